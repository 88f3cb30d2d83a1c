"""Stage `evaluation`: texts -> numbers."""
