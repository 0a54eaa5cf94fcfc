"""The rules that a request must follow, checked before it is sent."""
