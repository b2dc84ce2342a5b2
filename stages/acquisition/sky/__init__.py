"""The simulated sky: its wind, its traffic, and the frames its aircraft send (issue 2 item 2; systems.md O8)."""
