"""`python -m tests.benchmarks.bench_prepare [--rows N]`: does the corpus of the thesis (33 million
rows) fit? (`make bench-prepare`)

Writes synthetic winds (35 days of traffic, seeded) into a temporary folder, prepares them in a
process of its own with the split of the full profile, and prints rows, seconds and peak resident
memory. Limits: 4 GiB and 3 minutes at 33 million rows; exit 1 beyond.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from tqdm import tqdm

from stages import params, seeds
from stages.winds import rows as prepared

DAYS, CHUNK, AIRCRAFT = 35, 500_000, 20_000
LIMIT_BYTES, LIMIT_S, LIMIT_ROWS = 4 * 2**30, 180.0, 33_000_000
START_S = 1_500_000_000.0


def generate(path: Path, rows: int) -> None:
    """`rows` winds in time order over 35 days: smooth fields with noise, one row in a thousand
    unusable or a copy."""
    draw = seeds.stream(0, "bench", "prepare")
    with tqdm(total=rows, disable=None, desc="generate", unit="row") as bar:
        writer, written = None, 0
        while written < rows:
            n = min(CHUNK, rows - written)
            step = 86400.0 * DAYS * n / rows
            t = (
                np.floor(np.sort(draw.uniform(0, step, n)) * 10) / 10
                + START_S
                + 86400.0 * DAYS * written / rows
            )
            lat = draw.uniform(45, 49, n)
            lon = draw.uniform(4, 11, n)
            alt = draw.integers(100, 1640, n) * 25.0
            u = 20 + 10 * np.sin(lat + t / 9e3) + alt / 2e3 + draw.normal(0, 1, n)
            v = 5 + 10 * np.cos(lon - t / 7e3) + draw.normal(0, 1, n)
            u[draw.random(n) < 0.001] = 400.0
            icao = pl.Series(np.char.mod("%06X", np.arange(AIRCRAFT) + 0x400000)).gather(
                draw.integers(0, AIRCRAFT, n)
            )
            frame = pl.DataFrame(
                {
                    "ts_s": t,
                    "icao": icao,
                    "lat_deg": lat,
                    "lon_deg": lon,
                    "alt_ft": alt,
                    "u_m_s": u,
                    "v_m_s": v,
                }
            )
            frame = frame.with_columns(
                u_true_m_s=pl.lit(None, pl.Float64),
                v_true_m_s=pl.lit(None, pl.Float64),
                file=pl.lit(f"week{written * 5 // rows}.csv"),
                record=pl.int_range(written, written + n, dtype=pl.UInt32),
            ).sort("ts_s", "icao", "file", "record")
            table = frame.to_arrow()
            writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
            writer.write_table(table)
            written += n
            bar.update(n)
        writer.close()


def measure(folder: Path) -> int:
    """Prepare `folder`/winds.parquet with the full profile's split; prints the figures and
    checks the limits."""
    settings = params.load()
    start = time.monotonic()
    meta = prepared.prepare(
        folder / "winds.parquet",
        folder,
        settings.profiles["full"].prepare["skysoft"],
        settings.decode.wind_max_m_s,
        "full",
        "bench",
    )
    seconds = time.monotonic() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"rows {meta['read']:,} (kept {meta['kept']:,}): {seconds:.1f} s, peak {peak / 2**30:.2f} "
        f"GiB, output {(folder / 'rows.parquet').stat().st_size / 2**30:.2f} GiB"
    )
    return int(peak > LIMIT_BYTES or seconds > LIMIT_S * max(1.0, meta["read"] / LIMIT_ROWS))


def main(arguments: list[str]) -> int:
    """Generate here, measure in a child, so that the generator's memory does not count."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.bench_prepare", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--rows", type=int, default=LIMIT_ROWS)
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        return measure(options.measure)
    with tempfile.TemporaryDirectory(prefix="bench-prepare-") as folder:
        generate(Path(folder) / "winds.parquet", options.rows)
        return subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.bench_prepare", "--measure", folder],
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
