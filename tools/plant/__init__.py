"""What `tools/plant_noise` runs: noise planted into parallel text, and what a filter finds of it."""
