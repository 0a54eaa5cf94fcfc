"""The two ports, blocking and awaiting: how flows reach the backends, threads, clocks and chance."""
