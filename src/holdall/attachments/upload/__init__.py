"""Uploads: the bytes of new files on their way into a service."""
