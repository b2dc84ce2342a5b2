"""The experiment on and off the grid (document G): its tasks, training, measures and tables. The
models are field models (stages/fields/models/grid_tnp.py)."""
