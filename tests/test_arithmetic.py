"""One arithmetic on every x86-64 processor with AVX2: its settings stand before a library loads,
and the probe answers as the reference.

Each law is asked of a process of its own, whose environment holds none of the settings that this
one inherits or has made.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stages import arithmetic
from stages.arithmetic import ALWAYS, CHOSEN, COMMON, NATIVE, NEEDED, VARIABLE, probe

ROOT = Path(__file__).parents[1]
REGENERATE = "python -m stages.arithmetic.probe > stages/arithmetic/reference.json"  # new libraries
SETTINGS = f"{{name: os.environ.get(name) for name in {sorted(ALWAYS | CHOSEN)}}}"
# an Intel processor with AVX2 and without AVX-512
EMULATOR = ["qemu-x86_64", "-cpu", "Skylake-Client"]
able = pytest.mark.skipif(
    not arithmetic.able(), reason="needs an x86-64 processor with AVX2 and FMA"
)
DECOMPOSED = """
import numpy
found = numpy.linalg.svd(numpy.random.default_rng(0).normal(size=(300, 200)))
print(b"".join(part.tobytes() for part in found).hex())
"""


def bare(**more: str) -> dict[str, str]:
    """The environment without any setting of ours, with `more`."""
    ours = {VARIABLE, *ALWAYS, *CHOSEN}
    return (
        {name: value for name, value in os.environ.items() if name not in ours}
        | {"PYTHONPATH": str(ROOT)}
        | more
    )


def python(code: str, *words: str, **more: str) -> subprocess.CompletedProcess:
    """A fresh interpreter with the code; `words` stand before it, `more` in its environment."""
    return subprocess.run(
        [*words, sys.executable, "-c", code],
        env=bare(**more),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def answer(code: str, **more: str):
    """What the code prints, read as JSON."""
    done = python(f"import json, os, sys\n{code}", **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def computed(kernels: str, threads: str, first: str = "") -> str:
    """A decomposition, to the last bit, where OpenBLAS is told to take `kernels` and `threads`."""
    done = python(f"{first}\n{DECOMPOSED}", OPENBLAS_CORETYPE=kernels, OPENBLAS_NUM_THREADS=threads)
    assert done.returncode == 0, done.stderr
    return done.stdout


# --- the settings


@able
def test_the_settings_stand_before_torch_is_loaded_and_in_every_child():
    code = f"""
import subprocess
import stages
early = "torch" not in sys.modules and "numpy" not in sys.modules
code = "import json, os; print(json.dumps({SETTINGS}))"
child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
print(json.dumps([early, {SETTINGS}, json.loads(child.stdout)]))"""
    assert answer(code) == [True, ALWAYS | CHOSEN, ALWAYS | CHOSEN]


def test_the_native_arithmetic_unsets_what_a_parent_in_the_common_one_has_set():
    code = f"import stages\nprint(json.dumps({SETTINGS}))"
    left = ALWAYS | dict.fromkeys(CHOSEN)
    assert answer(code, **{VARIABLE: NATIVE}, **ALWAYS, **CHOSEN) == left
    assert answer(code, **{VARIABLE: NATIVE}) == left
    own = {"MKL_CBWR": "AVX2"}
    assert answer(code, **{VARIABLE: NATIVE}, **own) == left | own, "the user's own choice stays"


@able
@pytest.mark.parametrize("word", ["", COMMON])
def test_whatever_was_set_before_the_common_arithmetic_sets_its_own(word):
    others = dict.fromkeys(ALWAYS | CHOSEN, "other")
    assert (
        answer(f"import stages\nprint(json.dumps({SETTINGS}))", **{VARIABLE: word}, **others)
        == ALWAYS | CHOSEN
    )


def test_an_unknown_arithmetic_ends_with_2_and_the_two_that_there_are():
    done = python("import stages", **{VARIABLE: "fast"})
    assert (done.returncode, done.stdout) == (2, "") and "Traceback" not in done.stderr
    assert done.stderr.startswith("error:")
    assert all(word in done.stderr for word in (VARIABLE, "fast", COMMON, NATIVE))


@pytest.mark.parametrize(
    "machine, flags, expected",
    [
        ("x86_64", {"avx2", "fma", "sse2"}, True),
        ("AMD64", NEEDED, True),
        ("x86_64", {"avx2"}, False),
        ("x86_64", {"fma", "avx512f"}, False),
        ("x86_64", set(), False),
        ("aarch64", NEEDED, False),
    ],
)
def test_a_processor_is_able_by_its_kind_and_instructions(machine, flags, expected):
    assert arithmetic.able(machine, frozenset(flags)) is expected


def test_a_processor_that_cannot_computes_in_its_own_arithmetic(monkeypatch):
    monkeypatch.setattr(arithmetic, "able", lambda: False)
    environ = {"PATH": "/bin", **CHOSEN}  # as of a parent on another machine
    arithmetic.settle(environ)
    assert environ == {"PATH": "/bin"} | ALWAYS
    monkeypatch.setattr(arithmetic.os, "environ", environ)
    assert arithmetic.name() == NATIVE


# --- the libraries


def test_numpys_kernels_for_wider_registers_are_off():
    code = """
from numpy._core._multiarray_umath import __cpu_dispatch__ as built, __cpu_features__ as features
print(json.dumps([name for name in built if features[name]]))"""
    own = answer(code)
    if not {"X86_V4", "AVX512_ICL", "AVX512_SPR"} & set(own):
        pytest.skip("needs a processor with AVX-512")
    for more in ({}, {VARIABLE: NATIVE}):  # NumPy makes data: alike under either name
        assert answer(f"import stages\n{code}", **more) == ["X86_V3"]


@pytest.mark.skipif(
    arithmetic.platform.machine() != "x86_64" or (os.cpu_count() or 1) < 2,
    reason="kernels of x86-64, two cores",
)
def test_stages_compute_the_same_bits_whatever_kernels_and_threads_the_machine_would_give():
    expected = computed("Haswell", "1")
    assert computed("Sandybridge", "1") != expected, "the digits do depend on the kernels"
    assert computed("Haswell", "2") != expected, "and on the threads"
    assert computed("Sandybridge", "2", "import stages") == expected


@able
@pytest.mark.parametrize(
    "first",
    [
        "import torch, stages",
        "import stages, importlib.util\nimportlib.util.find_spec('torch')\nimport torch",
        *(
            pytest.param(words, marks=pytest.mark.slow_fault)
            for words in (
                "import stages.arithmetic.kernels",
                "import stages, torch",
                "import stages\nfrom torch import nn",
                "from stages import errors\nimport stages.arithmetic\nimport torch.nn.functional",
            )
        ),
    ],
)
def test_torch_is_mended_whichever_way_it_is_loaded(first):
    code = f"""{first}
from stages.arithmetic import kernels, _Loaded
waiting = [finder for finder in sys.meta_path if isinstance(finder, _Loaded)]
print(json.dumps([len(kernels._LIBRARY), len(waiting)]))"""
    assert answer(code) == [1, 0]
    assert answer(code, **{VARIABLE: NATIVE}) == [0, 0], "the native arithmetic is torch's own"


def test_a_module_that_only_looks_for_torch_does_not_load_it():
    code = "import stages, importlib.util\nimportlib.util.find_spec('torch')"
    assert answer(f"{code}\nprint(json.dumps('torch' in sys.modules))") is False


# --- the probe


def test_the_line_names_what_is_loaded_and_is_the_same_when_asked_again():
    code = """import stages
from stages.arithmetic import probe
lines = [probe.line()]
import torch
lines += [probe.line(), probe.line()]
print(json.dumps(lines))"""
    early, late, again = answer(code)
    assert early.startswith(f"{COMMON if arithmetic.able() else NATIVE} numpy:")
    assert late == again and late.startswith(f"{early} torch:")


@able
@pytest.mark.parametrize("threads", [pytest.param("1", marks=pytest.mark.slow_fault), "2"])
def test_every_probed_operation_answers_as_the_reference(threads):
    """The golden file is stages/arithmetic/reference.json; REGENERATE makes it."""
    done = subprocess.run(
        [sys.executable, "-m", "stages.arithmetic.probe"],
        cwd=ROOT,
        check=True,
        env=bare(OMP_NUM_THREADS=threads),
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout) == probe.reference(), REGENERATE
    assert done.stdout == probe.REFERENCE.read_text(encoding="utf-8"), REGENERATE


@able
def test_the_probe_tells_the_native_arithmetic_from_the_common_one():
    """Else it would be no evidence: the replaced products, at least, are others."""
    code = "import stages\nfrom stages.arithmetic import probe\n"
    native = answer(f"{code}print(json.dumps(probe.torch_operations()))", **{VARIABLE: NATIVE})
    known = {name: hashed for name, hashed in probe.reference().items() if "torch " in name}
    assert set(native) == set(known) and native != known


@able
@pytest.mark.slow_fault
@pytest.mark.skipif(
    shutil.which(EMULATOR[0]) is None,
    reason="qemu-x86_64 (QEMU's user mode) is not installed: no other processor",
)
def test_an_emulated_processor_of_another_maker_has_the_same_line():
    """About half a minute: some hundred times slower than the processor at hand."""
    code = "import stages, torch\nfrom stages.arithmetic import probe\nprint(probe.line())"
    here, there = python(code), python(code, *EMULATOR)
    assert (here.returncode, there.returncode) == (0, 0), there.stderr
    assert there.stdout == here.stdout and here.stdout.startswith(COMMON)
