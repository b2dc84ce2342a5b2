"""Checks of the machine: room on the disks, memory and cores, a GPU, the clock.

Room is counted where the project writes: its work folder, DVC's cache and the folder of temporary
files. torch is asked about a GPU only where a driver is there, and in a process of its own, because
its import takes seconds. Sizes in bytes, shown in GiB; times in seconds.
"""

import os
import shutil
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from stages.doctor.finding import FAIL, OK, WARN, Finding, Place

GIB = 1 << 30
ROOM = {
    "work folder": (1 * GIB, 5 * GIB),
    "DVC cache": (1 * GIB, 5 * GIB),
    "temporary files": (GIB // 8, GIB),
}  # fail below, warn below
MEMORY = (1 * GIB, 4 * GIB)
DRIVER = (Path("/proc/driver/nvidia/version"), Path("/dev/nvidia0"))
ASK_TORCH = (
    "import torch; print(torch.__version__, torch.cuda.is_available() and "
    "torch.cuda.get_device_name(0))"
)


def judged(value: float, limits: tuple[float, float]) -> str:
    """fail below the first limit, warn below the second."""
    return FAIL if value < limits[0] else WARN if value < limits[1] else OK


def existing(path: Path) -> Path:
    """The path, or the nearest folder above it that is there."""
    while not path.exists():
        path = path.absolute().parent
    return path


def disk(place: Place) -> list[Finding]:
    """Free bytes where the project writes, against ROOM."""
    found = []
    where = {
        "work folder": place.root / ".work",
        "DVC cache": place.cache(),
        "temporary files": Path(tempfile.gettempdir()),
    }
    for name, path in where.items():
        free, (least, good) = shutil.disk_usage(existing(path)).free, ROOM[name]
        found.append(
            Finding(
                f"disk: {name}",
                judged(free, ROOM[name]),
                f"{free / GIB:.1f} GiB free at {path} (fails below "
                f"{least / GIB:.3g}, warns below {good / GIB:.3g})",
                "free some space: `dvc gc -w` drops what no present file needs from the cache, `rm "
                "-r .work/downloads` the kept downloads; or move the cache (`dvc cache dir`)",
            )
        )
    return found


def available() -> int:
    """Bytes of memory that can be had: the system's, or what the control group still allows
    where that is less."""
    free = next(
        int(line.split()[1]) * 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith("MemAvailable:")
    )
    try:
        limit, used = (
            Path("/sys/fs/cgroup", name).read_text().strip()
            for name in ("memory.max", "memory.current")
        )
        return free if limit == "max" else min(free, int(limit) - int(used))
    except (OSError, ValueError):
        return free


def memory(place: Place) -> Finding:
    """Memory that can be had, and cores."""
    free = available()
    return Finding(
        "memory",
        judged(free, MEMORY),
        f"{free / GIB:.1f} GiB can be had (fails below {MEMORY[0] / GIB:.3g}, warns below "
        f"{MEMORY[1] / GIB:.3g}); {len(os.sched_getaffinity(0))} cores",
        "end other programs, or run fewer stages at once: make repro JOBS=1",
    )


def gpu(place: Place) -> Finding:
    """A GPU that torch can use; none is well, too."""
    wanted = place.environ.get("TRADEWIND_DEVICE", "")
    if find_spec("torch") is None:
        return Finding("gpu", FAIL, "torch is not installed", "make setup")
    if not any(path.exists() for path in DRIVER):
        lost = wanted.startswith("cuda")
        return Finding(
            "gpu",
            FAIL if lost else OK,
            "none here: the CPU is used" + (", but TRADEWIND_DEVICE asks for CUDA" if lost else ""),
            "unset TRADEWIND_DEVICE, or install the GPU's driver",
        )
    done = place.ask(sys.executable, "-c", ASK_TORCH)
    version, _, name = done.stdout.strip().partition(" ")
    if done.returncode or name == "False":
        why = done.stderr.strip().splitlines()[-1:] or [
            f"torch {version} was built without CUDA, or for a newer driver"
        ]
        return Finding(
            "gpu",
            WARN,
            f"a driver is here, but torch cannot use it: {why[0]}",
            "pip install torch of the same version with CUDA for this driver; until then the "
            "CPU is used",
        )
    return Finding("gpu", OK, f"{name}, torch {version}")


def clock(place: Place) -> Finding:
    """The clock against the time of the last commit. Any time zone will do: decisions are by
    hash and by number, records in UTC."""
    done, now = place.ask("git", "log", "-1", "--format=%ct"), time.time()
    told = (
        f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(now))}, local zone {time.strftime('%Z')}"
    )
    behind = (
        int(done.stdout) - now if done.returncode == 0 and done.stdout.strip().isdigit() else 0.0
    )
    if behind <= 0:
        return Finding("clock", OK, told)
    return Finding(
        "clock",
        WARN,
        f"{told}: {behind:.0f} s before the last commit was made",
        "set the clock (timedatectl set-ntp true): new commits and ledger entries would look older "
        "than the last one",
    )
