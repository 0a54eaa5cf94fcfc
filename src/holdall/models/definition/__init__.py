"""Definitions: from a class statement to a frozen schema."""
