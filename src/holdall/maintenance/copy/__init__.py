"""Copying a database, with its tables, jobs and files, to another database."""
