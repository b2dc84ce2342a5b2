"""Validation: Polars reduces, Great Expectations judges, and what fails critically stops the
DAG."""
