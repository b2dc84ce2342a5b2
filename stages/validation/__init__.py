"""Validation: Polars reduces, Great Expectations judges, and what fails critically stops the
DAG."""

import os

os.environ["GX_ANALYTICS_ENABLED"] = "false"  # before Great Expectations is imported anywhere here
