"""The simulated sky: its wind, its traffic, and the frames its aircraft send."""
