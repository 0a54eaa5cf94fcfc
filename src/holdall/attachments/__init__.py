"""Attachments: files that belong to items, with their metadata in the one table and their bytes in a file service."""
