"""Blobs: stored files, their metadata, their bytes and their URLs."""
