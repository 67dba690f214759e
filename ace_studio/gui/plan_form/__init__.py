"""The forms that the plan panel is made of, one for each table of the recipe that says what is wanted."""
