"""Places on the sphere as spherical harmonics through sines (document G, section 3.1.2; Russwurm et
al. 2024).

Real harmonics of degrees below L, each of mean square 1 over the sphere, in their order: of a
degree l its orders -l to l. Legendre functions come by recursion over the degree (Holmes and
Featherstone 2002) and cos(m lambda) cos(phi)^m by powers of x + iy, so that a pole is a place as
any other and nothing is divided by its cosine. The network is a SIREN (Sitzmann et al. 2020): sines
of linear maps, weights begun as there. (The public code of G names its network so and has ReLU
instead.) Shapes: ... any, L degrees, H width.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

FIRST = 30.0  # the frequency of the first layer


def harmonics(place: Float[Tensor, "... 3"], degrees: int) -> Float[Tensor, "... L2"]:
    """Real spherical harmonics of unit vectors, L2 = degrees^2; column l^2 + l + m is that of
    degree l and order m."""
    x, y, z = place.unbind(-1)
    found: dict[tuple[int, int], Tensor] = {}
    cosine, sine = torch.ones_like(z), torch.zeros_like(z)
    sector = 1.0
    for m in range(degrees):
        before, now = torch.zeros_like(z), torch.full_like(z, sector)
        for degree in range(m, degrees):
            if degree > m:
                two, width = 2 * degree, degree**2 - m**2
                first = math.sqrt((two + 1) * (two - 1) / width)
                second = (two + 1) * ((degree - 1) ** 2 - m**2) / ((two - 3) * width)
                second = math.sqrt(max(second, 0.0))
                before, now = now, first * z * now - second * before
            found[degree, m] = now * cosine
            if m:
                found[degree, -m] = now * sine
        cosine, sine = cosine * x - sine * y, sine * x + cosine * y
        sector *= math.sqrt((2 * m + 3) / (2 * m + 2)) * (math.sqrt(2) if m == 0 else 1.0)
    order = [(degree, m) for degree in range(degrees) for m in range(-degree, degree + 1)]
    return torch.stack([found[key] for key in order], -1)


class HarmonicPlaces(nn.Module):
    """Unit vectors (..., 3) -> features (..., H): sin(W sin(FIRST (V harmonics + b)) + c)."""

    def __init__(self, degrees: int, width: int):
        super().__init__()
        self.degrees = degrees
        self.inward, self.outward = nn.Linear(degrees**2, width), nn.Linear(width, width)
        bound = math.sqrt(6 / width)
        nn.init.uniform_(self.inward.weight, -1 / degrees**2, 1 / degrees**2)
        nn.init.uniform_(self.outward.weight, -bound, bound)

    def forward(self, place: Float[Tensor, "... 3"]) -> Float[Tensor, "... H"]:
        """Features of places."""
        return self.outward((FIRST * self.inward(harmonics(place, self.degrees))).sin()).sin()
