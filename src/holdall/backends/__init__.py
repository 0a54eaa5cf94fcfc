"""Everything that touches the world: stores, sockets, files, threads, clocks. Imports `holdall.core` only."""
