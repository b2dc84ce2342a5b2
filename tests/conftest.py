"""What all tests share: numpy with the kernels that the stages compute with; no test judged by
the clock."""

import hypothesis

import stages  # noqa: F401  (before any test loads numpy)

hypothesis.settings.register_profile("unhurried", deadline=None)
hypothesis.settings.load_profile("unhurried")
