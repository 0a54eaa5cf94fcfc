"""``holdall items``."""
