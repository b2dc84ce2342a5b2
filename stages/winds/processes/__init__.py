"""Nowcasts that are laws: neural processes on winds, and how well their spread is known."""
