"""Keys: from components to what a table stores, in every layout."""
