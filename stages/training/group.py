"""The processes that train one cell together: one, or several under torchrun (data parallel, DDP
of torch).

A step takes the mean loss over `slices` slices of the training set (profiles.*.training.slices).
Each of W processes takes every W-th of them; DDP makes every process step with the mean of all
gradients, so W processes learn what one learns from the same slices, to rounding.
`TRADEWIND_PROCESSES=W` has a cell start itself under torchrun; whoever starts torchrun (on several
machines, say) is joined. The count is a way to run, like the device: no stage depends on it, and
the run record says it where it is not one.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import distributed

from stages.errors import InputError

PROCESSES = "TRADEWIND_PROCESSES"


@dataclass(frozen=True)
class Group:
    """Who trains: this process' rank among `world`."""

    rank: int = 0
    world: int = 1

    def share(self, whole: list[Any]) -> list[Any]:
        """This process' part of a list: every `world`-th."""
        return whole[self.rank :: self.world]

    def gather(self, part: list[Any]) -> list[Any]:
        """All processes' parts of a list, in the order of the whole, on every process."""
        if self.world == 1:
            return part
        parts: list[list[Any]] = [[] for _ in range(self.world)]
        distributed.all_gather_object(parts, part)
        return [parts[k % self.world][k // self.world] for k in range(sum(map(len, parts)))]

    def mean(self, value: torch.Tensor) -> torch.Tensor:
        """The mean of a number over the processes."""
        if self.world > 1:
            distributed.all_reduce(value)
            value = value / self.world
        return value


ALONE = Group()


def wanted() -> int:
    """How many processes TRADEWIND_PROCESSES asks for; InputError for what is no count."""
    text = os.environ.get(PROCESSES, "1")
    if not text.isdigit() or not 1 <= int(text) <= 1024:
        raise InputError(
            "not a number of processes", where=PROCESSES, found=repr(text), expected="1 to 1024"
        )
    return int(text)


def refuse_unshared(slices: int, world: int, parameter: str = "training.slices") -> None:
    """InputError unless a step's slices, or sets, can be dealt evenly to the processes: an
    uneven mean would weigh some more than others."""
    if slices % world:
        raise InputError(
            "a step's slices cannot be dealt evenly to the processes",
            where=f"profiles.*.{parameter}",
            expected=f"a multiple of {world}, the number of processes",
            found=str(slices),
            remedy=f"set {parameter} in params.yaml, or {PROCESSES}=1",
        )


def inside() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


def start(world: int, module: str, arguments: list[str]) -> None:
    """Become torchrun with `world` processes of the module on this machine; they die with it."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    os.execv(
        sys.executable,
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nnodes=1",
            f"--nproc-per-node={world}",
            "--rdzv-backend=c10d",
            "--rdzv-endpoint=127.0.0.1:0",
            "--local-addr=127.0.0.1",
            "-m",
            module,
            *arguments,
        ],
    )


@contextmanager
def joined(device: torch.device) -> Iterator[Group]:
    """The group this process belongs to, for as long as the block lasts; alone unless torchrun
    started it."""
    if not inside() or int(os.environ["WORLD_SIZE"]) == 1:
        yield ALONE
        return
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield current()
    finally:
        distributed.destroy_process_group()


def current() -> Group:
    """The group that this process has joined; alone where it has joined none."""
    if not (distributed.is_available() and distributed.is_initialized()):
        return ALONE
    return Group(distributed.get_rank(), distributed.get_world_size())


def environment(found: dict[str, Any], group: Group) -> dict[str, Any]:
    """A record's environment with the number of processes, where it is not one."""
    return found if group.world == 1 else {**found, "processes": group.world}
