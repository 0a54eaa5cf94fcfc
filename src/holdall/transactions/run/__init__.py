"""Runs of functions in transactions, with their retries."""
