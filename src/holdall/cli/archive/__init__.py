"""``holdall archive``."""
