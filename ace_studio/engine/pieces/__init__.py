"""Running a model of which only pieces could be captured: the pieces in their places, Python between them."""
