"""Adam (Kingma and Ba 2015), the step that torch.optim.Adam(fused=True) takes, to the bit, on any
device.

torch's class imports its compiler (torch._dynamo, 1.1 s) to say that it is not to be compiled; this
one calls the same kernel, and no more. One parameter's state: `step`, `exp_avg`, `exp_avg_sq`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

BETAS, EPSILON = (0.9, 0.999), 1e-8
STATE = ("step", "exp_avg", "exp_avg_sq")


class Adam:
    """groups: {"params": parameters of one device and type, "lr": their learning rate} each, which
    may be changed between steps."""

    def __init__(self, groups: Iterable[Mapping[str, Any]]):
        self.param_groups = [{**group, "params": list(group["params"])} for group in groups]
        self.parameters = [p for group in self.param_groups for p in group["params"]]
        self._state: dict[Tensor, dict[str, Tensor]] = {}

    def state(self, parameter: Tensor) -> dict[str, Tensor]:
        """A parameter's state; zeros before its first step."""
        return self._state.get(parameter) or {
            "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
            "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
            "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
        }

    def set_state(self, parameter: Tensor, state: Mapping[str, Tensor]) -> None:
        """Go on from a state that `state` gave, wherever it lay since."""
        self._state[parameter] = {
            name: state[name].to(parameter.device, copy=True) for name in STATE
        }

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient."""
        for group in self.param_groups:
            moved = [parameter for parameter in group["params"] if parameter.grad is not None]
            if not moved:
                continue
            states = [self._state.setdefault(one, self.state(one)) for one in moved]
            steps, averages, squares = ([state[name] for state in states] for name in STATE)
            torch._foreach_add_(steps, 1)
            torch._fused_adam_(
                moved,
                [parameter.grad for parameter in moved],
                averages,
                squares,
                [],
                steps,
                lr=group["lr"],
                beta1=BETAS[0],
                beta2=BETAS[1],
                weight_decay=0.0,
                eps=EPSILON,
                amsgrad=False,
                maximize=False,
            )
