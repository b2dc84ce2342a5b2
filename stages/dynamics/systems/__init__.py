"""Systems that are simulated here, one file each, and what is measured of their dynamics."""
