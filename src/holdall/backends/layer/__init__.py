"""Layers that stand before a backend: spans for its requests, a cache for its reads, mirrors of its objects."""
