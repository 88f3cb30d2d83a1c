"""What much text costs: `tools/scale`."""
