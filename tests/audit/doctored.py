"""What attacks do to results: data, evaluations, histories doctored, and all that names them."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import real
from safetensors.numpy import load_file, save

from stages.tables import parts

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


def evaluated(number: str) -> str:
    """The folder of a number's evaluation."""
    experiment, profile, dataset = number.split("/")[:3]
    return f"reports/{experiment}/{profile}/evaluated/{dataset}"


def tabled(root: Path, home: str, work: Callable[[dict], None]) -> list[str]:
    """The numbers of an experiment edited in both of their files, written as the project writes
    them: each stays in its file. The files."""
    metrics, rest = (root / home / name for name in (parts.METRICS, parts.BREAKDOWNS))
    first = json.loads(metrics.read_text())
    kept = {place for cell in first["cells"].values() for place in places(cell)}
    content = parts.joined(first, json.loads(rest.read_text()))
    work(content)
    for file, one in zip((metrics, rest), parts.parted(content, kept), strict=True):
        real.write(root, file.relative_to(root).as_posix(), parts.by_line(one) + "\n")
    return [f"{home}/{file.name}" for file in (metrics, rest)]


def places(entry: dict, path: str = "") -> Iterator[str]:
    """The places of an entry's numbers."""
    for key, one in entry.items():
        if isinstance(one, dict) and "value" not in one:
            yield from places(one, f"{path}{key}/")
        else:
            yield f"{path}{key}"


def told(number: str, work: Callable[[dict], None]) -> Callable[[Path], None]:
    """The entry of a number's cell edited in evaluation and table, all agreeing."""
    experiment, profile, dataset, cell = number.split("/")[:4]
    inner, home = f"{evaluated(number)}/metrics.json", f"reports/{experiment}/{profile}"

    def forge(root: Path) -> None:
        real.change(root, inner, lambda content: work(content["cells"][cell]))
        both = tabled(root, home, lambda content: work(content["cells"][f"{dataset}/{cell}"]))
        real.agree(root, inner, *both)

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


def shrunk(content: dict) -> None:
    """The truth of the test moved half of its way to the mean."""
    content["target_y"][content["split"] == 2] *= 0.5


def stayed(content: dict) -> None:
    """Walks of the test that stand still, which is likelier than that they go."""
    content["tokens"][content["split"] == 2, 1:] = content["tokens"][content["split"] == 2, :1]


def scaled(root: Path) -> None:
    """The unit of the targets halved: so is every error that is told in the problem's units."""

    def work(content: dict) -> None:
        content["scaler"]["o_std"] = [one / 2 for one in content["scaler"]["o_std"]]

    path = DARCY.replace(".safetensors", ".json")
    real.change(root, path, work)
    real.agree(root, path)


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
    inner, home = f"{evaluated(ROOMS)}/metrics.json", "reports/sparse_fields/mini"
    cell = ROOMS.split("/")[3]

    def work(content: dict, prefix: str) -> None:
        cells = content["cells"]
        cells[f"{prefix}{cell[:-1]}7"] = cells[f"{prefix}{cell}"]

    real.change(root, inner, lambda content: work(content, ""))
    both = tabled(root, home, lambda content: work(content, "darcy/"))
    real.agree(root, inner, *both)


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
