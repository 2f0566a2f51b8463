"""The pages of the built-in capabilities, one file for each question that they answer."""
