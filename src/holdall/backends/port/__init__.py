"""The two ports, for sync and async code: how flows reach the backends, threads, clocks and random numbers."""
