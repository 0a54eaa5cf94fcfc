"""Helpers that several rooms' tests share: servers, stores, clocks, recorders, both colours, programs to kill."""
