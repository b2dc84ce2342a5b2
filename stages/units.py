"""Units of aviation in SI, exact by definition, and the sphere on which distances are taken."""

KNOT_M_S = 1852 / 3600  # m/s in one knot
FOOT_M = 0.3048  # m in one foot
FOOT_KM = 0.0003048  # km in one foot
EARTH_KM = 6371.0088  # mean radius of the Earth (IUGG)
