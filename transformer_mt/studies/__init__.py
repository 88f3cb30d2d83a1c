"""Stage `studies`: a base recipe and variants of it -> runs -> measures."""
