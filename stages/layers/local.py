"""Local coordinates: x = (east, north, up, t) of models that read where AND when the wind was
measured (thesis sections 1.3.2-1.3.3).

East and north in units of HORIZONTAL_KM from the area's centre, height in VERTICAL_KM, time in
TIME_MIN from the issue time: numbers of order one for a network, while lengths in km and minutes
stay what a meteorologist would say. A length l weighs a squared difference by 1/l^2.
"""

import torch
from jaxtyping import Float
from torch import Tensor

HORIZONTAL_KM, VERTICAL_KM, TIME_MIN = 100.0, 1.0, 60.0


def weights(horizontal_km: float, vertical_km: float, time_min: float) -> Float[Tensor, "4"]:
    """Weights (4,) of squared differences in local units: (s_xy, s_xy, s_z, s_t) of equation
    1.3, one for each length."""
    horizontal = (HORIZONTAL_KM / horizontal_km) ** 2
    return torch.tensor(
        [horizontal, horizontal, (VERTICAL_KM / vertical_km) ** 2, (TIME_MIN / time_min) ** 2]
    )
