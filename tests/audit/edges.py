"""Attacks on what binds results together: records that name nothing, gates, commands, pages, raw
files beside others, the ledger of promotions."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import real
from attack import Attack
from doctored import CODE, ROOMS, WIND

from stages import records

RECORDS = "reports/sparse_fields/mini/records"
EVALUATE, TRAIN = f"{RECORDS}/darcy.evaluate.json", f"{RECORDS}/darcy.cnp-shared-20k-s0.train.json"
GATE, LOCK = "data/mini/validated/gp_wind.json", "reports/sparse_fields/dvc.lock"
DECLARED = "reports/sparse_fields/dvc.yaml"
CLAIMS, PAGE = "reports/wind_baselines/mini/claims.json", "reports/wind_baselines/mini/page.html"
INDEX, LEDGER = "reports/index.html", "reports/ledger.jsonl"
RAW = "data/mini/raw/gp_wind"
EXAMPLE = "data/mini/example/evaluated/simulated/metrics.json"
CHOSEN = "data/mini/records/simulated.example.json"
COMMAND = "stages.fields.evaluate sparse_fields mini darcy"
NOTHING = {"modules": [], "files": {}, "digest": "0" * 64}
Forge = Callable[[Path], None]


def record(path: str, **content: object) -> Forge:
    """A record that says otherwise, with locks that agree."""

    def forge(root: Path) -> None:
        real.change(root, path, lambda one: one.update(content))
        real.agree(root, path)

    return forge


def gate(**content: object) -> Forge:
    """A gate that says otherwise, all agreeing."""

    def forge(root: Path) -> None:
        real.change(root, GATE, lambda one: one.update(content))
        real.agree(root, GATE)

    return forge


def text(path: str, old: str, new: str, also: Forge | None = None) -> Forge:
    """A text replaced where it stands first in a file, all agreeing."""

    def forge(root: Path) -> None:
        content = (root / path).read_text()
        assert old in content, (path, old)
        real.write(root, path, content.replace(old, new, 1))
        if also:
            also(root)
        real.agree(root, path)

    return forge


def scorer(root: Path) -> None:
    """A scorer that halves, of which no record says that it was used."""
    source = (root / CODE).read_text()
    real.write(
        root, CODE, source + "\n\ndef halved(value: float) -> float:\n    return value / 2\n"
    )
    for file in sorted((root / RECORDS).glob("*.json")):
        real.change(root, file.relative_to(root).as_posix(), lambda one: one.update(code=NOTHING))
    named = [file.relative_to(root).as_posix() for file in sorted((root / RECORDS).glob("*.json"))]
    real.agree(root, *named)


def beside(root: Path) -> None:
    """A raw file more, which the manifest lists, and every record that made or read the others."""
    path, manifest = f"{RAW}/more.csv", f"{RAW}/manifest.json"
    (root / path).write_text("1,2,3\n")
    told, changed = records.describe(root / path), [path, manifest]
    real.change(root, manifest, lambda one: one["files"].update({"more.csv": listed(one, told)}))
    for file in sorted((root / "data/mini/records").glob("gp_wind.*.json")):
        content = json.loads(file.read_text())
        for side in (content["inputs"], content["outputs"]):
            side.update({path: told} if f"{RAW}/manifest.json" in side else {})
        changed.append(file.relative_to(root).as_posix())
        real.write(root, changed[-1], json.dumps(content, indent=2, sort_keys=True) + "\n")
    real.agree(root, *changed)


def listed(manifest: dict, told: dict) -> dict:
    """A line of a manifest such as another file has, of other bytes."""
    return next(iter(manifest["files"].values())) | {key: told[key] for key in ("bytes", "sha256")}


def claimed(root: Path) -> None:
    """The verdict of a claim turned round."""
    content = json.loads((root / CLAIMS).read_text())
    content[0]["verdict"] = "holds" if content[0]["verdict"] != "holds" else "fails"
    real.write(root, CLAIMS, json.dumps(content, indent=2, sort_keys=True) + "\n")
    real.agree(root, CLAIMS)


def entry(number: int, previous: str, after: str) -> str:
    """A line of the ledger, chained to the one before it."""
    own = {"number": number, "previous": previous, "after": after, "verdict": "promoted"}
    found = json.dumps(own, sort_keys=True, allow_nan=False, ensure_ascii=False)
    digest = hashlib.sha256(found.encode()).hexdigest()
    return json.dumps(own | {"digest": digest}, sort_keys=True)


def rewritten(root: Path) -> None:
    """A ledger of two lines, of which the first was written anew and the second chained to it."""
    for champions in ("ab", "cb"):
        lines, previous = [], ""
        for number, one in enumerate(champions, 1):
            lines.append(entry(number, previous, one * 64))
            previous = hashlib.sha256(lines[-1].encode()).hexdigest()
        real.write(root, LEDGER, "\n".join(lines) + "\n")
        real.agree(root, LEDGER)


def example(root: Path) -> None:
    """The example's error halved, all agreeing."""

    def halve(content: dict) -> None:
        (cell,) = content["cells"].values()
        cell["metrics"]["rmse_component_kn"]["value"] /= 2

    real.change(root, EXAMPLE, halve)
    real.agree(root, EXAMPLE)


def falls(
    name: str, number: str, depth: str, path: str, word: str, forge: Forge, issue: str
) -> Attack:
    """An attack of this file."""
    return Attack(name, number, depth, path, word, forge, issue)


EDGES = (
    falls(
        "an evaluation that names no inputs",
        ROOMS,
        "record",
        EVALUATE,
        "does not name its input",
        record(EVALUATE, inputs={}),
        "6",
    ),
    falls(
        "a training that names no outputs",
        ROOMS,
        "record",
        TRAIN,
        "does not name its output",
        record(TRAIN, outputs={}),
        "6",
    ),
    falls(
        "a training that names no code",
        ROOMS,
        "record",
        TRAIN,
        "lacks the module",
        record(TRAIN, code=NOTHING),
        "6",
    ),
    falls(
        "a training that tells no parameters",
        ROOMS,
        "record",
        TRAIN,
        "tells none of the parameters",
        record(TRAIN, params={}),
        "6",
    ),
    falls("a gate that is shut", WIND, "record", GATE, "it is shut", gate(success=False), "6"),
    falls(
        "a gate that failed, its failure trimmed",
        WIND,
        "record",
        GATE,
        "it expects nothing",
        gate(expectations=[]),
        "6",
    ),
    falls(
        "a doctored scorer, all records claiming no code",
        ROOMS,
        "record",
        EVALUATE,
        "lacks the module",
        scorer,
        "7",
    ),
    falls(
        "a declared command replaced by echo, in the lock, too",
        ROOMS,
        "record",
        LOCK,
        "no dvc.lock names a command of ours",
        text(
            LOCK,
            f"exec python -m {COMMAND}\n",
            "echo\n",
            text(
                DECLARED,
                "exec python -m stages.fields.evaluate sparse_fields ${item.profile} "
                "${item.dataset}",
                "echo",
            ),
        ),
        "7",
    ),
    falls(
        "a lock of another command",
        ROOMS,
        "record",
        LOCK,
        "dvc.yaml declares",
        text(LOCK, COMMAND, COMMAND.replace("sparse_fields", "failure_modes")),
        "7",
    ),
    falls(
        "a raw file beside the made ones, listed and recorded",
        WIND,
        "raw",
        f"{RAW}/more.csv",
        "it is not made",
        beside,
        "8",
    ),
    falls(
        "the verdict of a claim turned round", WIND, "all", CLAIMS, "derived again", claimed, "3"
    ),
    falls(
        "a number of a page edited",
        WIND,
        "all",
        PAGE,
        "derived again",
        text(PAGE, "</html>", "<!-- 7.69 kn --></html>"),
        "7",
    ),
    falls(
        "a number of the front page edited",
        WIND,
        "all",
        INDEX,
        "derived again",
        text(INDEX, "</html>", "<!-- 7.69 kn --></html>"),
        "7",
    ),
    falls(
        "the example of a nowcast told to err less",
        WIND,
        "all",
        EXAMPLE,
        "derived again",
        example,
        "6",
    ),
    falls(
        "the example of a nowcast chosen from nothing",
        WIND,
        "all",
        CHOSEN,
        "does not name its input",
        record(CHOSEN, inputs={}),
        "6",
    ),
    falls(
        "the ledger of promotions written anew and chained",
        WIND,
        "all",
        LEDGER,
        "does not begin with the ledger of commit",
        rewritten,
        "10",
    ),
)
