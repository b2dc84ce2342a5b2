"""What README shows below a command of ours is what the command says of this project's results."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stages import arithmetic

ROOT = Path(__file__).parents[1]
SHOWN = re.compile(r"(?m)^```console\n\$ tradewind (?P<words>[^\n]+)\n(?P<said>(?:.*\n)+?)```$")
BLOCKS = list(SHOWN.finditer((ROOT / "README.md").read_text(encoding="utf-8")))


def test_readme_shows_what_a_command_says():
    assert BLOCKS


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: shlex.split(block["words"])[0])
def test_a_command_says_what_readme_shows(block):
    words = shlex.split(block["words"])
    if lacking := [one for one in words if "/" in one and not (ROOT / one).exists()]:
        pytest.skip(f"results of mini are not here ({', '.join(lacking)}): `make repro`")
    if arithmetic.name() != arithmetic.COMMON:
        pytest.skip("README tells the results of the common arithmetic")
    done = subprocess.run(
        [sys.executable, "-m", "stages.cli", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.rstrip()) == (0, block["said"].rstrip())
