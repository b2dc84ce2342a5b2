"""Prefect flows: they drive the dvc command line and import nothing of stages."""
