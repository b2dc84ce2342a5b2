"""Raw files in a folder, decoded with small settings."""

from pathlib import Path

from stages import params
from stages.winds.decoding import transform as decode

SETTINGS = params.load("params.yaml")
DECODE = SETTINGS.decode


def transformed(raw: Path, out: Path, entry: str, **changes) -> dict:
    out.mkdir(parents=True, exist_ok=True)
    return decode.transform(
        raw, sorted(p.name for p in raw.iterdir()), entry, DECODE.model_copy(update=changes), out
    )


def csv(path: Path, rows) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{t:.3f},{h}\n" for t, h in rows))
