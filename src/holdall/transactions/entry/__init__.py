"""Entries: the items of a transaction, each in its role, and the steps that each adds to the commit. Pure."""
