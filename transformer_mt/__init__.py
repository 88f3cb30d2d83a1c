"""A translation training toolkit: raw parallel text in, a scored translation model out."""

__version__ = "0.1.0"
