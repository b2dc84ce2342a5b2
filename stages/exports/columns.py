"""The columns of raw tables, by the name of the file: name, type, meaning with its unit. Facts of
the files' makers (data/README.md).

Files without a header (Mode-S frames) and arrays have no named columns; LAYOUTS says in words what
lies in them.
"""

Column = tuple[str, str, str]  # name, "Float" | "Integer" | "Text", meaning and unit

TIME, AIRCRAFT = "Unix time, s, UTC", "ICAO 24-bit address of the aircraft, hexadecimal"
PLACE: tuple[Column, ...] = (
    ("lat", "Float", "latitude, degrees"),
    ("lon", "Float", "longitude, degrees"),
    ("alt", "Float", "pressure altitude, ft"),
)
OWN_PLACE: tuple[Column, ...] = (
    ("lat_deg", "Float", "latitude, degrees"),
    ("lon_deg", "Float", "longitude, degrees"),
    ("alt_ft", "Float", "pressure altitude, ft"),
)
TRUE_WIND: tuple[Column, ...] = (
    ("u_true_m_s", "Float", "true wind towards the east, m/s"),
    ("v_true_m_s", "Float", "true wind towards the north, m/s"),
)
WIND_M_S: tuple[Column, ...] = (
    ("vwx", "Float", "wind towards the east, m/s"),
    ("vwy", "Float", "wind towards the north, m/s"),
)

TABLES: dict[str, tuple[Column, ...]] = {
    "winds.csv": (
        ("ts_s", "Float", TIME),
        ("icao", "Text", AIRCRAFT),
        *OWN_PLACE,
        ("u_m_s", "Float", "measured wind towards the east, m/s"),
        ("v_m_s", "Float", "measured wind towards the north, m/s"),
        *TRUE_WIND,
    ),
    "truth.parquet": (
        ("ts_s", "Float", TIME),
        ("icao", "Text", AIRCRAFT),
        *OWN_PLACE,
        *TRUE_WIND,
        ("gs_kt", "Float", "ground speed, kn"),
        ("trk_deg", "Float", "true track, degrees"),
        ("tas_kt", "Float", "true airspeed, kn"),
        ("hdg_true_deg", "Float", "true heading, degrees"),
        ("roll_deg", "Float", "roll angle, degrees"),
    ),
    "flights.csv": (
        ("FLIGHT_ID", "Integer", "number of the flight"),
        ("AIRCRAFT_TYPE", "Text", "ICAO type designator"),
        ("CFL", "Float", "cleared flight level, 100 ft"),
        ("TRACK_ALTITUDE", "Float", "flight level by radar, 100 ft"),
        ("AIRCRAFT", "Text", AIRCRAFT),
    ),
    "wind.csv": (
        ("ts", "Float", TIME),
        ("icao", "Text", AIRCRAFT),
        *PLACE,
        ("vw", "Float", "wind speed, m/s"),
        ("dw", "Float", "direction towards which the wind blows, clockwise from north, degrees"),
        *WIND_M_S,
    ),
    "aggregated.csv": (
        ("ts", "Float", TIME),
        ("icao", "Text", AIRCRAFT),
        *PLACE,
        ("gs_adsb", "Float", "ground speed by ADS-B, kn"),
        ("trk_adsb", "Float", "true track by ADS-B, degrees"),
        ("hdg", "Float", "magnetic heading, degrees"),
        ("ias", "Float", "indicated airspeed, kn"),
        ("mach", "Float", "Mach number, 1"),
        ("trk", "Float", "true track by Comm-B, degrees"),
        ("gs", "Float", "ground speed by Comm-B, kn"),
        ("tas", "Float", "true airspeed by Comm-B, kn"),
    ),
    "a320_406471.csv": (
        ("t", "Float", TIME),
        ("icao", "Text", AIRCRAFT),
        *PLACE,
        ("gs", "Float", "ground speed, kn"),
        ("trk", "Float", "true track, degrees"),
        ("roc", "Float", "rate of climb, ft/min"),
        *WIND_M_S,
        ("temp", "Float", "air temperature, K"),
    ),
}
TABLES["b737_example_1.csv"] = TABLES["b737_example_2.csv"] = (
    ("t", "Float", TIME),
    ("icao", "Text", AIRCRAFT),
    ("tpos", "Float", "time of the position, Unix s"),
    *PLACE,
    ("tv", "Float", "time of the velocity, Unix s"),
    ("gs", "Float", "ground speed, kn"),
    ("trk", "Float", "true track, degrees"),
    ("roc", "Float", "rate of climb, ft/min"),
    ("t50", "Float", "time of the register 5,0, Unix s"),
    ("tas", "Float", "true airspeed, kn"),
    ("t60", "Float", "time of the register 6,0, Unix s"),
    ("ias", "Float", "indicated airspeed, kn"),
    ("mach", "Float", "Mach number, 1"),
    ("hdg", "Float", "magnetic heading, degrees"),
    *WIND_M_S,
    ("temp", "Float", "air temperature, K"),
)

# What lies in files without named columns, by how the data set enters the project.
LAYOUTS = {
    "frames": "Lines without a header: Unix time in seconds (UTC), then one Mode-S frame as "
    "hexadecimal digits.",
    "winds": "One line a measurement; wind blows towards (u east, v north), m/s; pressure altitude "
    "in feet; Unix seconds, UTC.",
    "states": "One line an aircraft's state: knots, degrees, feet, Mach; Unix seconds, UTC.",
    "sets": "Arrays: sets of points with values; data/README.md names the units.",
    "sequences": "Sequences of tokens or letters, or of flight levels; data/README.md names the "
    "units.",
}
FORMATS = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "json": "application/json",
    "npy": "application/x-npy",
    "txt": "text/plain",
    "nc": "application/netcdf",
    "pt": "application/zip",
    "gz": "application/gzip",
    "zip": "application/zip",
}
