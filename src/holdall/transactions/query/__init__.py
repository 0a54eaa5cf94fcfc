"""Queries and scans: the question, the requests that answer it, and the rows."""
