"""Pictures of blobs: variants and previews, and what analysis finds out."""
