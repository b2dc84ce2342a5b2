"""Attacks on this repository's own results, by someone who knows the audit: what is done, the depth
at which it falls, the file that is named.

Each starts from a number that passes at that depth, and passes at the depths before it. Unless it
is careless it makes records, locks, DVC's cache and the commit agree (real.py). `nowhere` are those
that must have no effect: the number passes, and nothing of theirs has run.
"""

import os
import py_compile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import real
from safetensors.numpy import load_file, save

WIND = "wind_baselines/mini/gp_wind/persistence/rmse_component_kn"
ROOMS = "sparse_fields/mini/darcy/cnp-shared-20k-s0/mse"
WALK = "any_order/mini/walk/sigma_gpt-random-60k-s0/nats"
CHAOS = "chaos/mini/l96_f10/lstm-base-w48-s0/valid_time"
SEARCH = "wind_baselines/mini/gp_wind/kalman-swept-none-s0/rmse_component_kn"
GP, DARCY = "data/mini/prepared/gp_wind/rows.parquet", "data/mini/prepared/darcy/sets.safetensors"
WALKS = "data/mini/prepared/walk/sequences.safetensors"
SERIES = "data/mini/prepared/l96_f10/series.npy"
DECODED = "data/mini/decoded/gp_wind/winds.parquet"
COUNTS = "data/mini/decoded/simulated/counts.json"
CODE = "stages/fields/scores.py"
RUN = "reports/sparse_fields/mini/runs/darcy/cnp-shared-20k-s0"
MARK = "it ran"


@dataclass(frozen=True)
class Attack:
    """What is done to a copy, to which number, and where it falls (`nowhere`: it has no effect)."""

    name: str
    number: str
    depth: str
    path: str
    word: str
    forge: Callable[[Path], None]
    issue: str = ""  # the paragraph that asks for it


def evaluated(number: str) -> str:
    """The folder of a number's evaluation."""
    experiment, profile, dataset = number.split("/")[:3]
    return f"reports/{experiment}/{profile}/evaluated/{dataset}"


def told(number: str, work: Callable[[dict], None]) -> Callable[[Path], None]:
    """The entry of a number's cell edited in evaluation and table, all agreeing."""
    experiment, profile, dataset, cell = number.split("/")[:4]
    inner, table = (
        f"{evaluated(number)}/metrics.json",
        f"reports/{experiment}/{profile}/metrics.json",
    )

    def forge(root: Path) -> None:
        real.change(root, inner, lambda content: work(content["cells"][cell]))
        real.change(root, table, lambda content: work(content["cells"][f"{dataset}/{cell}"]))
        real.agree(root, inner, table)

    return forge


def doctored(root: Path) -> None:
    """The truth of the test moved in the prepared rows."""
    rows = pl.read_parquet(root / GP)
    moved = pl.when(pl.col("split") == 2).then(pl.col("u_m_s") * 0.5).otherwise(pl.col("u_m_s"))
    put(root, GP, rows.with_columns(moved.alias("u_m_s")))
    real.agree(root, GP)


def put(root: Path, path: str, table: pl.DataFrame) -> None:
    """A table in the place of another."""
    (root / path).unlink()
    table.write_parquet(root / path)


def decoded(root: Path) -> None:
    """A wind that no model reads, moved in the decoded winds and all that was made of them."""
    rows, winds = pl.read_parquet(root / GP), pl.read_parquet(root / DECODED)
    spare = rows.filter((pl.col("split") > 2) | (pl.col("split") < 0))
    record = int(spare["record"][-1])
    for path, table in ((GP, rows), (DECODED, winds)):
        here = pl.when(pl.col("record") == record)
        put(
            root,
            path,
            table.with_columns(
                here.then(12.5)
                .otherwise(pl.col("v_m_s"))
                .cast(table.schema["v_m_s"])
                .alias("v_m_s")
            ),
        )
    real.agree(root, GP, DECODED)


def tensors(path: str, work: Callable[[dict], None]) -> Callable[[Path], None]:
    """Tensors of a file edited, all agreeing."""

    def forge(root: Path) -> None:
        content = load_file(root / path)
        work(content)
        real.write(root, path, save(content))
        real.agree(root, path)

    return forge


def leak(names: tuple[str, ...], count: int, noise: float = 0.0) -> Callable[[dict], None]:
    """Test examples copied over training ones, which keep their file, record and group."""

    def work(content: dict) -> None:
        train, test = (np.flatnonzero(content["split"] == k)[:count] for k in (0, 2))
        rng = np.random.default_rng(0)
        for name in names:
            held = content[name][test]
            shift = rng.uniform(-noise, noise, held.shape) if noise else 0.0
            content[name][train[: len(test)]] = (held + shift).astype(held.dtype)

    return work


def winds_leaked(root: Path) -> None:
    """Training rows with the values of test rows, in the prepared and the decoded winds."""
    rows, winds = pl.read_parquet(root / GP), pl.read_parquet(root / DECODED)
    columns = ["lat_deg", "lon_deg", "alt_ft", "u_m_s", "v_m_s", "u_true_m_s", "v_true_m_s"]
    train, test = (np.flatnonzero(rows["split"].to_numpy() == k)[:20] for k in (0, 2))
    record, place = rows["record"].to_numpy(), winds["record"].to_numpy()
    of = {int(number): n for n, number in enumerate(place)}
    for name in columns:
        mine, theirs = rows[name].to_numpy().copy(), winds[name].to_numpy().copy()
        mine[train] = mine[test]
        theirs[[of[int(n)] for n in record[train]]] = mine[train]
        rows = rows.with_columns(pl.Series(name, mine, rows.schema[name]))
        winds = winds.with_columns(pl.Series(name, theirs, winds.schema[name]))
    put(root, GP, rows)
    put(root, DECODED, winds)
    real.agree(root, GP, DECODED)


def states_leaked(root: Path) -> None:
    """States of the test laid over states of the training."""
    series = np.load(root / SERIES)
    series[:, 100:150] = series[:, 1600:1650]
    (root / SERIES).unlink()
    np.save(root / SERIES, series)
    real.agree(root, SERIES)


def phantom(root: Path) -> None:
    """A second seed that nobody trained, in evaluation and table."""
    inner, table = f"{evaluated(ROOMS)}/metrics.json", "reports/sparse_fields/mini/metrics.json"
    cell = ROOMS.split("/")[3]

    def work(content: dict, prefix: str) -> None:
        cells = content["cells"]
        cells[f"{prefix}{cell[:-1]}7"] = cells[f"{prefix}{cell}"]

    real.change(root, inner, lambda content: work(content, ""))
    real.change(root, table, lambda content: work(content, "darcy/"))
    real.agree(root, inner, table)


def history(root: Path) -> None:
    """The losses of a training told lower than they were."""
    path = f"{RUN}/history.json"
    real.change(root, path, lambda one: one["val"][0].update(loss=one["val"][0]["loss"] * 0.9))
    real.agree(root, path)


def training(root: Path) -> None:
    """The losses on training data told lower: nothing else tells of them."""
    path = f"{RUN}/history.json"
    real.change(root, path, lambda one: one["train"][0].update(loss=one["train"][0]["loss"] * 0.9))
    real.agree(root, path)


def winner(root: Path) -> None:
    """A sweep's winner told better than its trials."""
    folder = "reports/wind_baselines/mini/sweeps/gp_wind"
    path = next((root / folder).glob("kalman*/best.yaml")).relative_to(root).as_posix()
    lines = (root / path).read_text().splitlines(keepends=True)
    lines = [
        "rmse_component_kn: 0.25\n" if line.startswith("rmse_component_kn:") else line
        for line in lines
    ]
    real.write(root, path, "".join(lines))
    real.agree(root, path)


def dropped(root: Path) -> None:
    """Dropped rows told under another reason: the sums stay."""

    def work(content: dict) -> None:
        for place in (content["dropped"], content["levels"]["frames"]["dropped"]):
            place["bad_crc"] -= 100
            place["df_not_used"] += 100

    real.change(root, COUNTS, work)
    real.agree(root, COUNTS)


def best(entry: dict) -> None:
    """A model told better than the one that knows the wind's law."""
    entry["metrics"]["rmse_component_m_s"].update(value=2.0, low=1.8, high=2.2)


# What Python or git lets stand between the commit and what runs.


def spy(root: Path, name: str = "spied") -> str:
    """Python that leaves a mark when it runs."""
    return f"open({str(root / name)!r}, 'w').write({MARK!r})\n"


def bytecode(root: Path) -> None:
    """Other bytecode in the cache of a module, of its very source's time and size."""
    source = root / CODE
    other = root / "other.py"
    other.write_text(spy(root) + source.read_text())
    code = Path(py_compile.compile(str(other), str(root / "other.pyc"), doraise=True)).read_bytes()
    stat = source.stat()
    head = code[:8] + int(stat.st_mtime).to_bytes(4, "little") + stat.st_size.to_bytes(4, "little")
    place = root / "stages/fields/__pycache__/scores.cpython-311.pyc"
    real.write(root, place.relative_to(root).as_posix(), head + code[16:])
    other.unlink()
    (root / "other.pyc").unlink()


def kernels(root: Path) -> None:
    """What numba compiled, replaced: an index is a pickle, which runs what it names."""
    evil = b"cbuiltins\nexec\n(V" + spy(root).replace("\n", "").encode() + b"\ntR."
    for source in sorted((root / "stages/layers/kernels").glob("*.py")):
        place = f"stages/layers/kernels/__pycache__/{source.stem}.x-1.py311.nbi"
        real.write(root, place, evil)
        real.write(root, place.replace(".nbi", ".1.nbc"), evil)


def site(root: Path) -> None:
    """Modules that Python imports when it starts, in a folder of PYTHONPATH."""
    for name in ("sitecustomize", "usercustomize", "startup"):
        real.write(root, f".work/led/{name}.py", spy(root))
    os.environ["PYTHONPATH"] = str(root / ".work/led")
    os.environ["PYTHONSTARTUP"] = str(root / ".work/led/startup.py")
    os.environ["NUMBA_CACHE_DIR"] = str(root / ".work/led")


def shadow(path: str, committed: bool = True) -> Callable[[Path], None]:
    """A file that Python loads in place of another."""

    def forge(root: Path) -> None:
        real.write(root, path, spy(root))
        if committed:
            real.commit(root)

    return forge


def replaced(root: Path) -> None:
    """Another object in the place of a source's (`git replace`)."""
    blob = real.git(root, "rev-parse", f"HEAD:{CODE}").strip()
    real.write(root, ".git/other", spy(root) + (root / CODE).read_text())
    other = real.git(root, "hash-object", "-w", "--no-filters", ".git/other").strip()
    real.git(root, "replace", blob, other)


def grafted(root: Path) -> None:
    """HEAD's very commit replaced by one of another tree."""
    tree = real.git(root, "rev-parse", "HEAD~3^{tree}").strip()
    other = real.git(root, "commit-tree", tree, "-m", "other").strip()
    real.git(root, "replace", "HEAD", other)


def filtered(root: Path) -> None:
    """An edited table that a filter of attributes hides from git."""
    table = root / "reports/sparse_fields/mini/metrics.json"
    (root / ".git/info").mkdir(exist_ok=True)
    real.write(root, ".git/info/attributes", "*.json filter=hide\n")
    real.git(root, "config", "filter.hide.clean", "git show HEAD:%f")
    real.write(root, table.relative_to(root).as_posix(), table.read_text() + "\n")


def unseen(root: Path) -> None:
    """An edited source that git is told not to look at."""
    real.git(root, "update-index", "--skip-worktree", CODE)
    real.write(root, CODE, (root / CODE).read_text() + "\nEDITED = True\n")


def linked(root: Path) -> None:
    """Prepared data that lie outside of the project, under a link."""
    outside = root.parent / "outside"
    outside.mkdir()
    (root / DARCY).rename(outside / "sets.safetensors")
    (root / DARCY).symlink_to(outside / "sets.safetensors")


TABLE = "reports/sparse_fields/mini/metrics.json"
ATTACKS = (
    Attack(
        "the truth of the test doctored in prepared data",
        WIND,
        "hash",
        GP,
        "are no decoded winds",
        doctored,
        "4",
    ),
    Attack(
        "a wind doctored in decoded and prepared data",
        WIND,
        "raw",
        DECODED,
        "made again from the raw files",
        decoded,
        "4",
    ),
    Attack(
        "a model better than the known optimum",
        SEARCH,
        "hash",
        f"{evaluated(SEARCH)}/metrics.json",
        "better than is possible",
        told(SEARCH, best),
        "4",
    ),
    Attack(
        "test rooms copied over training rooms, labels kept",
        ROOMS,
        "hash",
        DARCY,
        "have the values of training ones",
        tensors(DARCY, leak(("target_x", "target_y", "context_x", "context_y"), 100)),
        "5",
    ),
    Attack(
        "the same within the rounding of their values",
        ROOMS,
        "hash",
        DARCY,
        "have the values of training ones",
        tensors(DARCY, leak(("target_x", "target_y"), 100, 4e-7)),
        "5",
    ),
    Attack(
        "winds of the test copied over training winds",
        WIND,
        "hash",
        GP,
        "have the values of training ones",
        winds_leaked,
        "5",
    ),
    Attack(
        "walks of the test copied over training walks",
        WALK,
        "hash",
        WALKS,
        "of val or test are training ones",
        tensors(WALKS, leak(("tokens",), 100)),
        "5",
    ),
    Attack(
        "states of the test laid over training states",
        CHAOS,
        "hash",
        SERIES,
        "have the values of training ones",
        states_leaked,
        "5",
    ),
    Attack(
        "a breakdown of winds edited",
        WIND,
        "hash",
        f"{evaluated(WIND)}/slices.parquet",
        "its errors of persistence altitude",
        told(
            WIND,
            lambda entry: next(iter(entry["by_altitude"].values()))["rmse_component_m_s"].update(
                value=1.0
            ),
        ),
        "3",
    ),
    Attack(
        "an angle of winds edited",
        WIND,
        "hash",
        f"{evaluated(WIND)}/predictions-persistence.parquet",
        "it gives angle_mae_deg",
        told(WIND, lambda entry: entry["metrics"]["angle_mae_deg"].update(value=1.0)),
        "3",
    ),
    Attack(
        "an MSE of rooms edited",
        ROOMS,
        "hash",
        f"{evaluated(ROOMS)}/metrics.json",
        "of its MSE",
        told(ROOMS, lambda entry: entry["metrics"]["mse"].update(value=1e-6)),
        "3",
    ),
    Attack(
        "the nats of walks edited",
        WALK,
        "hash",
        f"{evaluated(WALK)}/metrics.json",
        "is not that of nats",
        told(WALK, lambda entry: entry["metrics"]["nats"].update(value=1.2)),
        "3",
    ),
    Attack(
        "a horizon of forecasts edited",
        CHAOS,
        "hash",
        f"{evaluated(CHAOS)}/metrics.json",
        "which is not its vpt",
        told(CHAOS, lambda entry: entry["metrics"]["valid_time"].update(value=2.5)),
        "3",
    ),
    Attack(
        "a seed that nobody trained",
        ROOMS,
        "record",
        TABLE,
        "no record says that it was trained",
        phantom,
        "8",
    ),
    Attack(
        "a history of validation edited",
        ROOMS,
        "hash",
        f"{evaluated(ROOMS)}/metrics.json",
        "it tells another history",
        history,
        "8",
    ),
    Attack(
        "a history of training edited",
        ROOMS,
        "train",
        f"{RUN}/history.json",
        "the same weights, and another file",
        training,
        "8",
    ),
    Attack(
        "a sweep's winner better than its trials",
        SEARCH,
        "record",
        "reports/wind_baselines/mini/sweeps/gp_wind",
        "the least of its trials",
        winner,
        "8",
    ),
    Attack(
        "rows dropped under another reason, sums kept",
        "wind_baselines/mini/simulated/persistence/rmse_component_kn",
        "raw",
        COUNTS,
        "made again from the raw files",
        dropped,
        "8",
    ),
    Attack("other bytecode beside a module", ROOMS, "nowhere", "", "", bytecode, "11"),
    Attack("other compiled kernels beside their sources", WIND, "nowhere", "", "", kernels, "11"),
    Attack(
        "sitecustomize, usercustomize, PYTHONSTARTUP, NUMBA_CACHE_DIR",
        ROOMS,
        "nowhere",
        "",
        "",
        site,
        "11",
    ),
    Attack(
        "a module at the root in place of a library",
        ROOMS,
        "record",
        "polars.py",
        "loaded before a library's",
        shadow("polars.py", False),
        "11",
    ),
    Attack(
        "an extension module beside its source",
        ROOMS,
        "record",
        "stages/fields/scores.cpython-311-x86_64-linux-gnu.so",
        "Python loads it before",
        shadow("stages/fields/scores.cpython-311-x86_64-linux-gnu.so"),
        "11",
    ),
    Attack(
        "a package in the place of a module",
        ROOMS,
        "record",
        "stages/fields/scores/__init__.py",
        "are one module",
        shadow("stages/fields/scores/__init__.py"),
        "11",
    ),
    Attack("a source replaced in git (git replace)", ROOMS, "nowhere", "", "", replaced, "11"),
    Attack("a commit replaced in git", ROOMS, "nowhere", "", "", grafted, "11"),
    Attack(
        "an edited table hidden by a filter of attributes",
        ROOMS,
        "record",
        TABLE,
        "recorded are",
        filtered,
        "11",
    ),
    Attack(
        "an edited source that git does not look at",
        ROOMS,
        "record",
        CODE,
        "differs from the commit",
        unseen,
        "11",
    ),
    Attack(
        "prepared data under a link out of the project",
        ROOMS,
        "hash",
        DARCY,
        "leads out of the project",
        linked,
        "11",
    ),
)
