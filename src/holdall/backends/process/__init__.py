"""Child processes that can be killed."""
