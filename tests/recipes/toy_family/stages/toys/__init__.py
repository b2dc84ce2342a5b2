"""A toy family: how surprising are the tosses of bent coins? Small enough to read whole."""
