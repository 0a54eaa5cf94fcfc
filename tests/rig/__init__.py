"""What several rooms' tests share: servers, stores, clocks, recorders, both colours, and programs that get killed."""
