"""Stage `text`: text <-> tokens."""
