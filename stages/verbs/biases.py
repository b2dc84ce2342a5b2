"""The verb that tells each aircraft's own bias of heading and airspeed."""

import argparse
import sys
from pathlib import Path

from stages import files
from stages.errors import InputError
from stages.units import KNOT_M_S
from stages.verbs import Verbs, added, writable

SUFFIX = ".parquet"  # of --out
FIRST = 20  # aircraft that are shown
FILES = ("winds.parquet", "states.parquet")  # of a decoded data set
REMEDY = "name data/PROFILE/decoded/DATASET of a set that `dvc repro` decoded"


def biases(arguments: argparse.Namespace) -> int:
    """Print biases and their standard deviations, the surest first; write winds without them."""
    folder: Path = arguments.folder
    refuse_unfit(arguments)
    import numpy as np
    import polars as pl

    from stages.winds.decoding import biases as own

    try:
        rows = own.decoded(folder).drop_nulls(own.COLUMNS).sort("ts_s")
    except pl.exceptions.PolarsError as error:
        raise InputError(
            "that is no decoded data set",
            where=str(folder),
            expected="winds.parquet and states.parquet as `dvc repro` writes them",
            found=f"{type(error).__name__}: {str(error).splitlines()[0]}",
            remedy=REMEDY,
        ) from None
    if rows.is_empty():
        raise InputError("there is no wind with its states", where=str(folder))
    found = own.estimate(rows, arguments.heading_deg, arguments.airspeed_kt * KNOT_M_S)
    sd = found.covariance.diagonal(axis1=1, axis2=2) ** 0.5
    order = np.argsort(-np.abs(found.mean[:, 0] / sd[:, 0]), kind="stable")
    shown = order if arguments.all else order[:FIRST]
    print("aircraft   heading [°]   airspeed [kn]      (each with its standard deviation)")
    for row in shown:
        (turn, speed), (turn_sd, speed_sd) = found.mean[row], sd[row]
        print(
            f"{found.icao[row]:<9} {turn:6.2f} ± {turn_sd:4.2f}   "
            f"{speed / KNOT_M_S:6.2f} ± {speed_sd / KNOT_M_S:4.2f}"
        )
    rest = len(order) - len(shown)
    print(
        f"{f'{rest:,} aircraft more: --all. ' if rest else ''}Of {len(rows):,} winds; without the "
        f"biases a wind's noise is {found.noise_m_s:.2f} m/s a component."
    )
    if arguments.out:
        with files.atomic_file(arguments.out) as stream:
            found.corrected(rows).write_parquet(stream)
        print(f"{arguments.out}: winds without the biases, error_m_s beside each", file=sys.stderr)
    return 0


def refuse_unfit(arguments: argparse.Namespace) -> None:
    """InputError, before the estimate, for a folder, a deviation or a file that will not do."""
    folder: Path = arguments.folder
    if arguments.out:
        writable(arguments.out)
        if arguments.out.suffix != SUFFIX:
            raise InputError(
                "winds without the biases are written in another form than that name tells",
                where=str(arguments.out),
                found=arguments.out.suffix or "no suffix",
                expected=SUFFIX,
                remedy=f"name a file that ends in {SUFFIX}",
            )
    absent = [name for name in FILES if not (folder / name).is_file()]
    if absent:
        raise InputError(
            "that is no decoded data set of aircraft's states",
            where=str(folder),
            expected=" and ".join(FILES),
            found=f"no {' and no '.join(absent)}",
            remedy=REMEDY,
        )
    for name in ("heading_deg", "airspeed_kt"):
        if not 0 < getattr(arguments, name) < float("inf"):
            raise InputError(
                "a standard deviation is above 0",
                where=f"--{name.replace('_', '-')}",
                found=f"{getattr(arguments, name):g}",
            )


def register(verbs: Verbs) -> None:
    """Add `tradewind biases`."""
    verb = added(
        verbs,
        "biases",
        "each aircraft's own bias of heading and airspeed",
        "Each aircraft's own bias of heading and airspeed, found from the winds that others "
        "measured near it, with its standard deviation.\nA bias that no other aircraft tells of is "
        "0 with the deviation that is expected beforehand.",
        "tradewind biases data/mini/decoded/simulated --out corrected.parquet",
    )
    verb.add_argument("folder", type=Path, metavar="DECODED", help="a decoded data set's folder")
    verb.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="write the winds without the biases, as FILE.parquet",
    )
    verb.add_argument(
        "--all", action="store_true", help=f"every aircraft, not the surest {FIRST} alone"
    )
    for name, unit, value in (("heading-deg", "degrees", 1.2), ("airspeed-kt", "knots", 1.7)):
        verb.add_argument(
            f"--{name}", type=float, default=value, metavar="SD",
            help=f"the standard deviation over aircraft that is expected, {unit} (%(default)s)",
        )  # fmt: skip
    verb.set_defaults(run=biases)
