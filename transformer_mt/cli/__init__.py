"""Stage `cli`: shell words: one module per verb."""
