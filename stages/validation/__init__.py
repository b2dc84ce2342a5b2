"""Validation: Polars reduces, Great Expectations judges, and what fails critically stops the DAG (design sections 1 and 4)."""
