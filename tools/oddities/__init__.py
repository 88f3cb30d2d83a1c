"""How much of what is planted the watch over translations finds, and how often it cries over good ones."""
