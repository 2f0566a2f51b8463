"""Documents of users, made into files in the background."""
