"""Stage `model`: ids -> hidden states -> logits."""
