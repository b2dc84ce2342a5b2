"""Tasks on and off the grid (document G, section 3.1): two coupled quantities, one known on a
regular grid, the other at scattered points and asked elsewhere; and their exact law."""
