"""Stage `data`: tokens -> batches."""
