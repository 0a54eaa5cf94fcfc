"""Items as lines of JSON: dumped from tables, and loaded into them. For fixtures and for looking."""
