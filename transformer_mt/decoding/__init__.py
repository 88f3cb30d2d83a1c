"""Stage `decoding`: weights and text -> translated text."""
