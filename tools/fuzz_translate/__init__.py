"""What `tools/fuzz` runs."""
