"""What an aircraft can report, whatever the source: one set of bounds for every table of states
or winds that enters, for captures of a nowcast and for the rows that are prepared."""

import polars as pl

# Time: 1970 to 2100, Unix seconds; degrees; feet.
PHYSICAL = {
    "ts_s": (0.0, 4.1e9),
    "lat_deg": (-90.0, 90.0),
    "lon_deg": (-180.0, 180.0),
    "alt_ft": (-2000.0, 60000.0),
}
REASON = "outside_range"


def outside() -> pl.Expr:
    """Rows of which one of these columns holds a number that cannot be; nulls are another
    matter."""
    return pl.any_horizontal(
        ~pl.col(name).is_between(*limits) for name, limits in PHYSICAL.items()
    ).fill_null(False)
