"""The stops of the demo, one module per subject, and what they stand on."""
