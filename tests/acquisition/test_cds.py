"""Months from the Climate Data Store: what is asked, that only whole months count, and that a key
never gets out.

The client is a fake that writes or raises what a test says; nothing here asks the network.
"""

import logging
import os
import traceback
import warnings
from pathlib import Path

import pytest
from pydantic import ValidationError

from stages import files
from stages.acquisition import cds
from stages.errors import DownloadError, InputError, TradewindError
from stages.params import Cds

KEY = "5f0c2a1e-77aa-4d11-9b3e-0123456789ab"
MIRROR = os.environ.get("TRADEWIND_MIRROR", "")
CONFIG = Cds(variables=("u100", "v100"), months=("2000-02", "2010-01"), step_h=12, grid_deg=5.0)


def message(edition=1, size=40):
    """The frame of a GRIB message: its length at its place, and its end."""
    head = {
        1: b"GRIB" + size.to_bytes(3, "big") + b"\1",
        2: b"GRIB\0\0\0\2" + size.to_bytes(8, "big"),
    }[edition]
    return head.ljust(size - 4, b"\x55") + b"7777"


class Client:
    """Delivers whole months, or what `deliver(request)` gives; counts how often it is asked."""

    key = f"12345:{KEY}"

    def __init__(self, deliver=None):
        self.asked, self.deliver = [], deliver

    def retrieve(self, dataset, request, target):
        self.asked.append((dataset, request))
        body = (
            self.deliver(request)
            if self.deliver
            else message() * (len(request["variable"]) * len(request["day"]) * len(request["time"]))
        )
        Path(target).write_bytes(body)


@pytest.fixture(autouse=True)
def work(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "WORK", tmp_path / "work")
    monkeypatch.setattr(files, "die_with", lambda parent: None)
    (tmp_path / "raw").mkdir()
    return tmp_path


def test_each_month_is_asked_for_once_with_all_its_days_in_the_store_s_words(work):
    client = Client()
    told = cds.fetch(CONFIG, work / "raw", lambda: client)
    assert [name for name, _ in client.asked] == ["reanalysis-era5-single-levels"] * 2
    leap = client.asked[0][1]
    assert (
        leap["day"][-1] == "29"
        and leap["time"] == ["00:00", "12:00"]
        and leap["year"] == ["2000"]
        and leap["month"] == ["02"]
    )
    assert leap["variable"] == ["100m_u_component_of_wind", "100m_v_component_of_wind"] and leap[
        "grid"
    ] == [5.0, 5.0]
    assert leap["data_format"] == "grib" and leap["product_type"] == ["reanalysis"]
    assert {name: entry["messages"] for name, entry in told.items()} == {
        "era5_2000_02.grib": 2 * 29 * 2,
        "era5_2010_01.grib": 2 * 31 * 2,
    }
    assert sorted(path.name for path in (work / "raw").iterdir()) == [
        "era5_2000_02.grib",
        "era5_2010_01.grib",
    ]
    assert told["era5_2010_01.grib"]["variables"] == ["u100", "v100"]


def test_the_expected_number_is_variables_times_days_times_hours():
    year = Cds(
        variables=("u10", "v10", "u100", "v100", "sp", "t2m", "tcc"),
        months=tuple(f"2000-{month:02d}" for month in range(1, 13)),
    )
    assert sum(cds.expected(year, month) for month in year.months) == 7 * 24 * 366
    assert 2 * 721 * 1440 * 7 * 24 * 366 < cds.bytes_needed(year) < 2.2 * 721 * 1440 * 7 * 24 * 366


def test_a_month_that_came_is_not_asked_for_again_after_a_failure(work):
    def late(request):
        if request["month"] == ["01"]:
            raise TimeoutError("the queue is long")
        return message() * 116

    first = Client(late)
    with pytest.raises(DownloadError, match="queue is long"):
        cds.fetch(CONFIG, work / "raw", lambda: first)
    assert list((work / "raw").iterdir()) == []
    second = Client()
    cds.fetch(CONFIG, work / "raw", lambda: second)
    assert [asked["month"] for _, asked in second.asked] == [["01"]]


@pytest.mark.parametrize(
    "body, what",
    [
        (b"<html>service unavailable</html>", "not whole GRIB"),
        (message() * 3 + message()[:-1], "not whole GRIB"),
        (message()[:10], "not whole GRIB"),
        (message() * 115, "another number"),
        (message() * 117, "another number"),
        (b"", "another number"),
        (message() * 116 + b"x", "not whole GRIB"),
        (b"PK\3\4" + bytes(400), "not whole GRIB"),
    ],
    ids=["page", "cut", "head", "one short", "one more", "empty", "tail", "archive"],
)
@pytest.mark.fault("F11")
def test_what_is_not_the_whole_month_is_refused_and_not_kept(work, body, what):
    with pytest.raises(DownloadError, match=what):
        cds.fetch(CONFIG, work / "raw", lambda: Client(lambda request: body))
    assert [
        path for path in work.rglob("*") if path.is_file() and path.parent.name != "locks"
    ] == []


def test_messages_of_both_editions_and_padding_between_them_are_counted(work):
    path = work / "some.grib"
    path.write_bytes(message(1) + bytes(80) + message(2, 64) + message(1, 100) + bytes(20))
    assert cds.messages(path) == 3


@pytest.mark.skipif(
    not MIRROR, reason="TRADEWIND_MIRROR is not set: the real GRIB files are absent"
)
@pytest.mark.parametrize(
    "name, count",
    [
        ("xarray-data/era5-2mt-2019-03-uk.grib", 744),
        ("earthkit/era5.grib", 1),
        ("weather-tools/test_data_grib_multiple_edition_multiple_timestep.grib2", 237),
    ],
)
def test_real_files_have_the_messages_that_eccodes_finds(name, count):
    path = Path(MIRROR) / "era5" / name
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    eccodes = pytest.importorskip("eccodes")
    with path.open("rb") as stream:
        assert cds.messages(path) == eccodes.codes_count_in_file(stream) == count


FAILURES = [
    f"401 Client Error for url https://12345:{KEY}@cds.example/api",
    f"invalid key {KEY}",
    f"{{'PRIVATE-TOKEN': '{KEY}'}}",
    "Authorization: Basic MTIzNDU6NWYwYzJhMWU3N2Fh was refused",
    "GET https://cds.example/x?token=s3cr3tTok&y=1 failed",
    f"auth=('12345', '{KEY}')",
    "password = hunter2hunter2",
    "pat 0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d",
]
INSIDE = (
    KEY,
    "MTIzNDU6NWYwYzJhMWU3N2Fh",
    "s3cr3tTok",
    "hunter2hunter2",
    "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d",
)


@pytest.mark.parametrize("said", FAILURES)
@pytest.mark.fault("F20")
def test_a_key_in_the_client_s_error_reaches_no_message_trace_log_or_file(
    work, capfd, caplog, said
):
    def fail(request):
        logging.getLogger("cdsapi").critical("failed: %s", said)
        print(said)
        raise RuntimeError(said)

    caplog.set_level(logging.DEBUG)
    with pytest.raises(TradewindError) as error:
        cds.fetch(CONFIG, work / "raw", lambda: Client(fail))
    written = b"".join(path.read_bytes() for path in work.rglob("*") if path.is_file()).decode()
    everything = (
        "".join(traceback.format_exception(error.value))
        + "".join(capfd.readouterr())
        + caplog.text
        + written
    )
    assert error.value.__cause__ is None and error.value.__context__ is None
    assert "[redacted]" in error.value.found
    assert [secret for secret in INSIDE if secret in everything] == []


def test_a_key_of_no_known_form_is_taken_out_because_the_client_holds_it(work):
    client = Client(
        lambda request: (_ for _ in ()).throw(RuntimeError("opensesame was not accepted"))
    )
    client.key = "opensesame"
    with pytest.raises(TradewindError) as error:
        cds.fetch(CONFIG, work / "raw", lambda: client)
    assert "opensesame" not in str(error.value) and "was not accepted" in str(error.value)


@pytest.mark.fault("F20")
def test_the_key_is_in_nothing_that_is_handed_on(work):
    assert KEY not in str(cds.fetch(CONFIG, work / "raw", Client)) and KEY not in str(
        CONFIG.model_dump()
    )


def test_plain_words_of_a_failure_stay_readable():
    plain = (
        "Request failed: no data is available within your requested subset for 2010-01-31 at "
        "100m_u_component_of_wind"
    )
    assert cds.redact(plain) == plain


@pytest.mark.parametrize(
    "said, kind",
    [
        ("required licences not accepted", InputError),
        ("401 Client Error", InputError),
        ("The job failed", DownloadError),
        ("Connection reset after 14030 bytes", DownloadError),
    ],
)
def test_what_the_user_must_mend_is_told_apart_from_what_may_pass(work, said, kind):
    with pytest.raises(kind) as error:
        cds.fetch(
            CONFIG,
            work / "raw",
            lambda: Client(lambda request: (_ for _ in ()).throw(RuntimeError(said))),
        )
    assert type(error.value) is kind and error.value.remedy


def test_without_an_account_the_error_says_how_to_get_one(tmp_path, monkeypatch):
    pytest.importorskip("cdsapi")
    for name in ("CDSAPI_URL", "CDSAPI_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CDSAPI_RC", str(tmp_path / "absent"))
    with warnings.catch_warnings(), pytest.raises(InputError, match="no usable account") as error:
        warnings.simplefilter("ignore")
        cds.connect()
    assert "cdsapirc" in error.value.remedy and error.value.__context__ is None


def test_logging_works_again_after_a_request(work, caplog):
    cds.fetch(CONFIG, work / "raw", Client)
    logging.getLogger("cdsapi").critical("afterwards")
    assert "afterwards" in caplog.text


@pytest.mark.parametrize(
    "change",
    [
        {"months": ("2000-13",)},
        {"months": ("1939-01",)},
        {"months": ("2000-01", "2000-01")},
        {"months": ()},
        {"variables": ("u500",)},
        {"area_deg": (10.0, 20.0, 30.0, 40.0)},
        {"area_deg": (60.0, 350.0, 40.0, 370.0)},
    ],
)
def test_a_request_that_cannot_be_is_refused_before_anybody_is_asked(change):
    with pytest.raises(ValidationError):
        Cds(**{"variables": ("u10",), "months": ("2000-01",)} | change)


def test_an_area_goes_into_the_request_north_west_south_east():
    assert cds.request(
        Cds(variables=("sp",), months=("2001-02",), area_deg=(60.0, -10.0, 40.0, 20.0)), "2001-02"
    )["area"] == [60.0, -10.0, 40.0, 20.0]
