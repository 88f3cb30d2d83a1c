"""`tools/gpu_check`: what is right and how fast on one card. Needs torch, numpy and sentencepiece alone."""
