"""``holdall artifacts`` and ``holdall alias``."""
