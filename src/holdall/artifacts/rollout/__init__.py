"""Staged rollouts: an alias that moves to a new version step by step, advanced by a job."""
