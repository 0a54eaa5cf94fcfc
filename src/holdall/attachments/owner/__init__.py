"""Owners: the classes that declare attachments, and the changes to their attachments."""
