"""Raw bytes: simulated, found in a mirror, or downloaded; never edited."""
