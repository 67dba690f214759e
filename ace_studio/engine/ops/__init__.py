"""What operators are: their roles and arguments, their cost, and the simpler operators that they decompose into."""
