"""The kinds of sequences, one home each: what makes the raw bytes of a simulated one and what reads
raw bytes to tokens (tokens.py). make(config, folder); read(raw, seed, config)."""
