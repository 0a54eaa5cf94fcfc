"""``holdall models inspect``: models for a table that other programs use, from a sample of its items."""
