"""Sweeps: the search for a model's arguments on validation slices, with Optuna."""
