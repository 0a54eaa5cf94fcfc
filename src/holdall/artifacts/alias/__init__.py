"""Aliases: which versions they serve, their histories, and the way back."""
