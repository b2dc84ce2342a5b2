"""Forecasting of dynamical systems: gates, attention and recurrence as hyperparameters (document R,
arXiv 2410.02654), beside the reservoirs that learn nothing by gradient."""
