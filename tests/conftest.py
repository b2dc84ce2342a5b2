"""What all tests share: numpy with the kernels that the stages compute with."""

import stages  # noqa: F401  (before any test loads numpy)
