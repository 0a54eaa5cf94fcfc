"""``holdall models``."""
