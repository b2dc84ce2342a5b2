"""ERA5 from the Climate Data Store: one GRIB file a month, asked for through cdsapi (thesis C.1.5;
profile `full`).

The account's key is cdsapi's own affair: it reads it from CDSAPI_KEY or ~/.cdsapirc, and here it is
neither read nor kept. What a client prints and logs while it works is dropped, and what it says
when it fails is repeated without anything that looks like a secret. A month is kept under
`.work/downloads` as soon as it is whole, so a killed run asks again only for what it lacks; whole
means: as many GRIB messages as variables and hours, from the first byte to the last. The store
makes its bytes anew for each request, so none are pinned: the manifest says what was asked, how
many messages came, and (as for every file) their digest.
"""

import contextlib
import hashlib
import io
import json
import logging
import re
import shutil
from calendar import monthrange
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from stages import files
from stages.errors import DownloadError, InputError
from stages.params import Cds

LICENCE = "Copernicus licence (free use and redistribution with attribution)"
SOURCE = "https://cds.climate.copernicus.eu/datasets/reanalysis-era5-single-levels"
ASKED = {
    "u10": "10m_u_component_of_wind",
    "v10": "10m_v_component_of_wind",
    "u100": "100m_u_component_of_wind",
    "v100": "100m_v_component_of_wind",
    "sp": "surface_pressure",
    "t2m": "2m_temperature",
    "tcc": "total_cloud_cover",
    "d2m": "2m_dewpoint_temperature",
    "skt": "skin_temperature",
}
ACCOUNT = (
    "make an account at cds.climate.copernicus.eu, accept the data set's licence there, and write "
    "url and key to ~/.cdsapirc as its page on the API says"
)
SECRETS = (
    r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",  # a key of the store
    r"(?i)(?<=//)[^/\s@]+(?=@)",  # user and password of a URL
    r"(?i)(?<=[?&])[^=\s&]*(?:key|token|signature|secret|password|credential)[^=\s&]*=[^&\s'\"]+",
    (
        r"(?i)\b(?:authorization|private-token|api[_-]?key|key|token|password|secret)"
        r"['\"]?\s*[:=]\s*['\"]?(?:(?:basic|bearer)\s+)?[^\s'\",;)}]+"
    ),
    r"(?i)\b(?:basic|bearer)\s+[a-z0-9+/=._-]{8,}",
    r"\b(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{24,}\b",  # any long word with a digit in it
)
GRIB1_MAX = 0x800000  # longer messages state their length in another way


def request(config: Cds, month: str) -> dict[str, Any]:
    """What is asked for one month, in the words of the store's form."""
    year, number = (int(part) for part in month.split("-"))
    area = {} if config.area_deg is None else {"area": list(config.area_deg)}
    grid = {} if config.grid_deg == 0.25 else {"grid": [config.grid_deg, config.grid_deg]}
    return {
        "product_type": ["reanalysis"],
        "variable": [ASKED[name] for name in config.variables],
        "year": [f"{year:04d}"],
        "month": [f"{number:02d}"],
        "day": [f"{day:02d}" for day in range(1, monthrange(year, number)[1] + 1)],
        "time": [f"{hour:02d}:00" for hour in range(0, 24, config.step_h)],
        "data_format": "grib",
        "download_format": "unarchived",
        **area,
        **grid,
    }


def expected(config: Cds, month: str) -> int:
    """How many GRIB messages the month's file has: one for each variable and time."""
    return (
        len(config.variables) * monthrange(*map(int, month.split("-")))[1] * (24 // config.step_h)
    )


def bytes_needed(config: Cds) -> int:
    """An upper estimate of what all months take on the disk: two bytes a value, and the headers."""
    north, west, south, east = config.area_deg or (90.0, -180.0, -90.0, 180.0)
    nodes = ((north - south) / config.grid_deg + 1) * ((east - west) / config.grid_deg + 1)
    return sum(expected(config, month) for month in config.months) * int(2 * nodes + 400)


def redact(text: str, *secrets: str) -> str:
    """`text` without `secrets` and whatever has the form of a key, a token or a password; at
    most 600 characters."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "[redacted]")
    for form in SECRETS:
        text = re.sub(
            form, lambda found: found[0] if found[0] in ASKED.values() else "[redacted]", text
        )
    return text[:600]


def messages(path: Path) -> int:
    """How many GRIB messages a file holds, if it is whole messages and zero padding from the first
    byte to the last.

    DownloadError for anything else: an error page, an archive, a file cut short.
    """
    count, at, size = 0, 0, path.stat().st_size
    with path.open("rb") as stream:
        while at < size:
            stream.seek(at)
            head = stream.read(16)
            if not head[:1].strip(b"\0"):
                at += len(head) - len(head.lstrip(b"\0"))
                continue
            edition = head[7] if len(head) == 16 and head[:4] == b"GRIB" else 0
            length = {
                1: int.from_bytes(head[4:7], "big"),
                2: int.from_bytes(head[8:16], "big"),
            }.get(edition, 0)
            stream.seek(max(at + length - 4, 0))
            if (
                length < 16
                or (edition == 1 and length >= GRIB1_MAX)
                or at + length > size
                or stream.read(4) != b"7777"
            ):
                raise DownloadError(
                    "what came is not whole GRIB",
                    where=path.name,
                    expected="messages from the first byte to the last",
                    found=f"{count} messages in the first {at} of {size} bytes, then {head[:8]!r}",
                    remedy="run again: the month is asked for anew",
                )
            count, at = count + 1, at + length
    return count


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Drop all that is printed and logged: a client may show its key at any level."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logging.disable(before)


def connect() -> Any:
    """cdsapi's client. InputError where cdsapi or its account is missing."""
    try:
        import cdsapi
    except ImportError:
        raise InputError(
            "the Climate Data Store is asked through cdsapi", remedy="pip install 'tradewind[era5]'"
        ) from None
    failed = ""
    with _silence():
        try:
            return cdsapi.Client(quiet=True, debug=False, progress=False)
        except Exception as error:  # cdsapi raises plain Exceptions
            failed = redact(f"{type(error).__name__}: {error}")
    raise InputError(
        "there is no usable account for the Climate Data Store", found=failed, remedy=ACCOUNT
    )


def _secrets(client: Any) -> list[str]:
    """What a client itself holds as its key, whole and in parts."""
    key = getattr(client, "key", None)
    return [key, *key.split(":")[1:]] if isinstance(key, str) else []


def _retrieve(client: Any, config: Cds, month: str, path: Path) -> int:
    """Bring one month to `path`, by temporary name and rename; returns its number of messages."""
    part = path.with_name(f".{path.name}.part")
    failed = ""
    try:
        with _silence():
            try:
                client.retrieve(config.dataset, request(config, month), str(part))
            except Exception as error:  # plain Exceptions, and those of the HTTP library
                failed = redact(f"{type(error).__name__}: {error}", *_secrets(client))
        if failed:  # raised here, where no part of the client's own error can be attached to it
            kind = (
                InputError
                if re.search(r"licen[cs]e|\bterms\b|\b40[13]\b|authenti", failed, re.IGNORECASE)
                else DownloadError
            )
            raise kind(
                "the Climate Data Store did not deliver",
                where=f"{config.dataset}, {month}",
                found=failed,
                remedy=ACCOUNT
                if kind is InputError
                else "run again later: the months that came are kept",
            )
        if not part.is_file():
            raise DownloadError(
                "the Climate Data Store delivered no file",
                where=f"{config.dataset}, {month}",
                remedy="run again later",
            )
        if (count := messages(part)) != expected(config, month):
            raise DownloadError(
                "a month has another number of GRIB messages than was asked for",
                where=f"{config.dataset}, {month}",
                expected=str(expected(config, month)),
                found=str(count),
                remedy="run again; or ask for months that are complete",
            )
        part.replace(path)
        files.sync_folder(path.parent)
        return count
    finally:
        part.unlink(missing_ok=True)


def fetch(
    config: Cds, folder: Path, client: Callable[[], Any] = connect
) -> dict[str, dict[str, Any]]:
    """Bring all months into `folder`; returns what the manifest says of each file beside its
    digest.

    That is: messages, variables, request, url, licence, source. InputError for a missing account or
    licence; DownloadError for the rest. The client is made only if a month is not among those kept.
    """

    def digest(asked):
        return hashlib.sha256(
            json.dumps([config.dataset, asked], sort_keys=True).encode()
        ).hexdigest()

    kept, told, connected = {}, {}, None
    for month in sorted(config.months):
        asked = request(config, month)
        name = f"era5_{month.replace('-', '_')}.grib"
        place = files.WORK / "downloads" / f"cds-{digest(asked)}" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        with files.guard(f"download-cds-{digest(asked)}"):
            count = messages(place) if place.is_file() else None
            if count != expected(config, month):
                connected = connected or client()
                count = _retrieve(connected, config, month, place)
        kept[name] = place
        told[name] = {
            "messages": count,
            "variables": list(config.variables),
            "request": asked,
            "url": None,
            "licence": LICENCE,
            "source": SOURCE,
        }
    for name, place in kept.items():  # only when all are there: they are large, and kept but once
        shutil.move(place, folder / name)
        with contextlib.suppress(OSError):  # a killed run's part lies there still
            place.parent.rmdir()
    return told
