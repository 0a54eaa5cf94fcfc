"""The bulk run that brings all stored items of a model up to date."""
