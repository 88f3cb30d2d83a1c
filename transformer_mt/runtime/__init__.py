"""Stage `runtime`: the process: seeds, device and precision, ranks."""
