"""The joint nowcast (O2): winds of aircraft and a coarse, late weather grid in one model."""
