"""Real hourly fields (a month of temperature over Britain): a coarse and stale grid and present
points, the present asked at other places. No exact law is known."""
