"""The stops of the demo's long tour, one module per subject, and their helpers."""
