"""Everything that touches the outside world: stores, sockets, files, threads, clocks. Imports only `holdall.core`."""
