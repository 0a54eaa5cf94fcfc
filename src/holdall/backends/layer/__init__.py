"""Layers in front of a backend: spans for its requests, a cache for its reads."""
