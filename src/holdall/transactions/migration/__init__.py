"""The bulk migration, which brings all stored items of a model up to date."""
