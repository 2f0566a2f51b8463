"""The only way to the tables: many refreshes in one transaction."""
