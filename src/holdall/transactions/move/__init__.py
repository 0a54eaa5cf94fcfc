"""Moves: copies of all items of one model, in any layout, as items of another."""
