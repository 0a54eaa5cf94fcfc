"""Benchmarks: each measures Holdall against a peer in the same run and holds the figure against a bar."""
