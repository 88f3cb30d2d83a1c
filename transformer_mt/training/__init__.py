"""Stage `training`: batches -> better weights."""
