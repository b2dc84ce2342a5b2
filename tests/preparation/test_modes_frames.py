"""Raw files in every state of repair.

Each line is a frame or is counted under its reason, and nothing crashes; the real captures, whole
and with damaged lines.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stages.errors import DataError
from stages.winds.modes import frames

A, B, SHORT = "A00015B7C26E1370AA00005DD34A", "8D40621D58C382D690C8AC2863A7", "02E197B00179C3"
MIRROR = Path(os.environ.get("TRADEWIND_MIRROR", "../shared/data"))


def written(folder, content) -> Path:
    path = folder / "frames.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "kept", "dropped"),
    [
        (b"", [], {}),
        (
            f"1495353600.125,{A}\n1495353601,{SHORT}\n",
            [(1495353600.125, A, 0), (1495353601, SHORT, 1)],
            {},
        ),
        (
            b"\xef\xbb\xbf" + f"1495353600,4D010D,{A}\r\n1495353601,406B90,{B}\r\n".encode(),
            [(1495353600, A, 0), (1495353601, B, 1)],
            {},
        ),
        (f'1457996400,"{B.lower()}","406B90",19', [(1457996400, B, 0)], {}),
        (f"ts;hex\n1495353600;{A}\n", [(1495353600, A, 1)], {"header": 1}),
        (f"{A}\t1495353600\n", [(1495353600, A, 0)], {}),
        (
            f"1495353600,{A}\n\n   \n1495353601,{B}\n",
            [(1495353600, A, 0), (1495353601, B, 3)],
            {"blank": 2},
        ),
        (
            f"1495353600,{A}\n1495353601,{A[:-1]}\n1495353601,{A}00\n",
            [(1495353600, A, 0)],
            {"wrong_length": 2},
        ),
        (
            f"1495353600,{A}\n1495353601,{A[:-1]}Z\n1495353601\n1495353601,\n",
            [(1495353600, A, 0)],
            {"not_hex": 3},
        ),
        (
            f"1495353600,{A}\n".encode() + b"1495353601,caf\xe9 \x80\x93\n",
            [(1495353600, A, 0)],
            {"not_hex": 1},
        ),
        (
            f"1495353600,{A}\nnever,{A}\nnan,{A}\ninf,{A}\n1495353600000,{A}\n-5,{A}\n,{A}\n",
            [(1495353600, A, 0)],
            {"bad_time": 6},
        ),
        (
            f"1495353600,{A}\n1495353601,{B}\n4000000000,{A}\n",
            [(1495353600, A, 0), (1495353601, B, 1)],
            {"time_outlier": 1},
        ),
        (
            f"1495353600,{A}\n1495353600,{A.lower()}\n1495353601,{A}\n",
            [(1495353600, A, 0), (1495353601, A, 2)],
            {"duplicate": 1},
        ),
        (b"\x00\x01\x02\xff" * 50, [], {"not_hex": 1}),
        (b"\xef\xbb\xbf", [], {}),
    ],
)
@pytest.mark.fault("F12")
def test_states_of_repair(tmp_path, content, kept, dropped):
    reading = frames.read(written(tmp_path, content))
    assert reading.frames.select("ts_s", "hex", "record").rows() == kept
    assert reading.dropped == dropped
    assert reading.read == len(kept) + sum(dropped.values())
    assert reading.frames.schema == frames.SCHEMA and set(reading.frames["file"]) <= {"frames.csv"}


@pytest.mark.fault("F12")
def test_order_is_restored_and_disorder_counted(tmp_path):
    reading = frames.read(
        written(
            tmp_path, f"1495353605,{A}\n1495353600,{B}\n1495353602,{SHORT}\n1495353606,{SHORT}\n"
        )
    )
    assert reading.frames["record"].to_list() == [1, 2, 0, 3] and reading.out_of_order == 2


def test_blocks_cut_nothing(tmp_path):
    rng = np.random.default_rng(1)
    lines = [f"{1495353600 + i}.5,{rng.bytes(14).hex()}" if i % 7 else "" for i in range(121)]
    for end in ("", "\n"):
        path = written(tmp_path, "\r\n".join(lines) + end)
        whole = frames.read(path)
        for size in (1, 64, 1000):
            parts = list(frames.read_blocks(path, size))
            assert sum(lines_read for _, lines_read, _ in parts) == whole.read == 121
            assert [row for part, _, _ in parts for row in part.rows()] == whole.frames.rows()


def test_a_missing_file_and_a_file_without_lines_are_data_errors(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="cannot be read"):
        frames.read(tmp_path / "absent.csv")
    monkeypatch.setattr(frames, "LINE_MAX_BYTES", 100)
    with pytest.raises(DataError, match="end of line"):
        frames.read(written(tmp_path, b"\x07" * 1000))


@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    st.one_of(
        st.binary(max_size=300),
        st.lists(
            st.sampled_from(
                [
                    f"1495353600,{A}",
                    f"1495353601.5,{B}",
                    "",
                    ",",
                    '"',
                    "ts,hex",
                    f"{A}",
                    "\xe9",
                    f"1,{SHORT}",
                    f"1495353600,4D010D,{A}",
                ]
            ),
            max_size=12,
        ).map(lambda lines: "\n".join(lines).encode("cp1252")),
    )
)
@pytest.mark.fault("F12")
def test_any_bytes_are_counted_and_never_crash(tmp_path, content):
    reading = frames.read(written(tmp_path, content))
    assert reading.read == len(reading.frames) + sum(reading.dropped.values())
    text = content.removeprefix(b"\xef\xbb\xbf")
    assert reading.read == (text.removesuffix(b"\n").count(b"\n") + 1 if text else 0)


@pytest.mark.parametrize("name", ["commb_df20", "commb_df21", "adsb"])
@pytest.mark.fault("F12")
def test_real_files_with_mutations(tmp_path, name):
    path = MIRROR / f"mode-s/pyModeS/sample_data_{name}.csv"
    if not path.exists():
        pytest.skip(f"{path.name} is not in the mirror")
    clean = frames.read(path)
    assert (
        clean.read == (2000 if name == "adsb" else 5000)
        and set(clean.dropped) == {"duplicate"}
        and clean.out_of_order == 0
    )
    lines = path.read_bytes().splitlines()
    lines[10], lines[11], lines[12], lines[13] = (
        lines[10][:-9],
        lines[11].replace(b"A", b"G").replace(b"8", b"G"),
        b"",
        b"\xff" + lines[13],
    )
    broken = frames.read(written(tmp_path, b"\n".join(lines)))
    lost = clean.frames.join(broken.frames, on="record", how="anti")["record"]
    assert broken.read == clean.read and set(lost) <= {10, 11, 12, 13}
    assert set(broken.dropped) <= set(frames.REASONS) and broken.dropped["blank"] == 1
