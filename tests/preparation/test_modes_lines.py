"""Every form in which receivers write frames: one parser, and decode, nowcast, intake and the gate
agree by it."""

import gzip
import json

import polars as pl
import pytest

from stages import params
from stages.errors import DataError
from stages.winds.decoding.transform import transform
from stages.winds.modes import frames
from stages.winds.nowcast import capture
from stages.winds.validation import frames as rules

A, B, SHORT = "A00015B7C26E1370AA00005DD34A", "8D40621D58C382D690C8AC2863A7", "02E197B00179C3"
HEXES = (A, B, SHORT)
TIMES = (1495353600.25, 1495353601.0, 1495353602.5)
CLOCKS = ("08:00:00.250", "08:00:01", "08:00:02.500")


def rows(form: str) -> str:
    return "".join(
        form.format(t=t, h=h, c=c, i=i) + "\n"
        for i, (t, h, c) in enumerate(zip(TIMES, HEXES, CLOCKS, strict=True))
    )


FORMS = {
    "commas": rows("{t},{h}"),
    "semicolons": "time;hex\n" + rows("{t};{h}"),
    "tabs": rows("{h}\t{t}"),
    "blanks": rows("{t} {h}"),
    "quotes": rows('"{t}","{h}","406B90",19'),
    "separators in quotes": rows('"tower, east; roof","{t}","{h}"'),
    "many columns in another order": rows("{i},{h},-61.5,{t},4D010D"),
    "decimal commas": "".join(
        f"{t:.3f}".replace(".", ",") + f";{h}\n" for t, h in zip(TIMES, HEXES, strict=True)
    ),
    "ISO moments": "when,hex\n" + rows("2017-05-21T{c}Z,{h}"),
    "moments with a blank": rows("2017-05-21 {c};{h}"),
    "moments with an offset": rows("{h},2017-05-21T10{c}+02:00").replace("1008:", "10:"),
    "date and time": "date,time,hex\n" + rows("2017/05/21,{c},{h}"),
    "date and time after the frame": rows("{h};17;{c};2017-05-21"),
    "date and time parted by blanks": rows("2017-05-21 {c} {h}"),
    "a day first, where dots part it": rows("21.05.2017 {c};{h}"),
    "a day first, parted by tabs": rows("21.5.2017\t{c}\t{h}"),
    "decimal commas parted by tabs": rows("2017-05-21\t{c}\t{h}").replace(".", ","),
    "AVR after a time": rows("{t},*{h};"),
    "AVR after a blank": rows("{t} *{h};"),
    "AVR with a counter": rows("{t};@0123456789AB{h};"),
    "rs1090": rows(
        '{{"timestamp":{t},"frame":"{h}","df":"17","metadata":[{{"rssi":-5}}]}}'
    ).lower(),
    "traffic": rows('{{"rawmsg": "{h}", "timestamp": "2017-05-21T{c}Z"}}'),
    "our own keys": rows('{{"ts_s": {t}, "frame": "{h}"}}'),
    "our own keys, milliseconds": rows('{{"ts_ms": {t}e3, "frame": "{h}"}}'),
    "a JSON list": "[" + rows('{{"ts": "{t}", "msg": "*{h};"}},'),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_every_form_gives_the_same_frames_everywhere(tmp_path, name, packed):
    content = FORMS[name].encode()
    path = tmp_path / ("frames.csv.gz" if packed else "frames.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    reading = frames.read(path)
    assert reading.frames.select("ts_s", "hex").rows() == list(zip(TIMES, HEXES, strict=True))
    assert set(reading.dropped) <= {"header"}
    assert capture.form(path) == "frames"
    seen = rules.lines(path).filter(rules.READABLE).select("ts_s", "hex").collect()
    assert seen.rows() == list(zip(TIMES, HEXES, strict=True))
    row = rules.frame_row(path)
    assert row["lines"] == reading.read and row["out_of_era"] == row["wrong_length"] == 0


def test_avr_without_a_time_is_counted_as_that(tmp_path):
    (tmp_path / "a.avr").write_text(f"*{A};\n@0123456789AB{B};\n")
    assert frames.read(tmp_path / "a.avr").dropped == {"no_time": 2}


def test_an_object_without_a_key_of_a_time_is_counted_as_that(tmp_path):
    lines = [{"when": TIMES[0], "frame": A}, {"ts": None, "frame": A}, {"ts": "soon", "frame": A}]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert frames.read(tmp_path / "a.jsonl").dropped == {"no_time": 2, "bad_time": 1}


@pytest.mark.parametrize(
    "form", ["{t},{h}", "abc,17,{h},{t}", '{{"ts": {t}, "msg": "{h}"}}', "{t} {h}", "{h};{t}.0"]
)
@pytest.mark.parametrize("factor", [10**3, 10**6, 10**9])
def test_times_in_another_unit_are_taken_where_most_lines_have_it(tmp_path, form, factor):
    lines = [form.format(t=int(t * factor), h=h) for t, h in zip(TIMES, HEXES, strict=True)]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines))
    reading = frames.read(path)
    assert reading.frames["ts_s"].to_list() == pytest.approx(TIMES, abs=1e-6)
    assert reading.frames["hex"].to_list() == list(HEXES) and not reading.dropped
    path.write_text("\n".join([*lines, *(form.format(t=int(TIMES[0]) + i, h=A) for i in range(4))]))
    assert frames.read(path).dropped == {"bad_time": 3}  # fewer than half


def test_lines_that_are_no_objects_are_counted(tmp_path):
    good = json.dumps({"timestamp": TIMES[0], "frame": A})
    lines = [good, "{", "[]", '{"timestamp": true, "frame": 7}', "", good.replace(A, A[:-1])]
    late = json.dumps({"timestamp": 1495353600000, "frame": B})  # milliseconds
    (tmp_path / "a.jsonl").write_text("\n".join([*lines, late]))
    reading = frames.read(tmp_path / "a.jsonl")
    assert reading.frames["hex"].to_list() == [A]
    assert reading.dropped == {
        "blank": 2,  # an empty list is nothing, too
        "not_json": 1,
        "not_hex": 1,
        "wrong_length": 1,
        "bad_time": 1,
    }


def test_impossible_dates_and_clocks_are_bad_times(tmp_path):
    whole = rows("2017-05-21,{c},{h}") * 3
    bad = "".join(
        f"{day},{clock},{A}\n"
        for day, clock in (
            ("2017-02-30", "08:00:00"),
            ("2017-05-21", "25:00:00"),
            ("2017-05-21", "08:61:00"),
        )
    )
    (tmp_path / "a.csv").write_text(whole + bad)
    assert frames.read(tmp_path / "a.csv").dropped == {"bad_time": 3, "duplicate": 6}


def test_a_cut_gzip_file_is_a_data_error(tmp_path):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(FORMS["commas"].encode() * 50)[:-12])
    with pytest.raises(DataError, match="compressed file of frames is damaged"):
        frames.read(path)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.avr", "a.tsv", "A.CSV.GZ"])
def test_decode_takes_the_files_of_every_form(tmp_path, name):
    (tmp_path / "raw").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "raw" / name).write_bytes(FORMS["rs1090"].encode())
    counts = transform(
        tmp_path / "raw", [name, "LICENSE.txt"], "frames", params.load().decode, tmp_path / "out"
    )
    assert counts["read"] == 3
    assert pl.read_parquet(tmp_path / "out/states.parquet").is_empty()


def test_one_bad_time_among_thousands_is_one_line_less(tmp_path):
    lines = [f"{1457996400 + i}.250,8D406B909945DE1000040599{i:04X}" for i in range(7753)]
    lines[5000] = lines[5000].replace("1458001400", "9999999999")
    (tmp_path / "a.csv").write_text("\n".join(lines))
    assert frames.read(tmp_path / "a.csv").dropped == {"bad_time": 1}
    row = rules.frame_row(tmp_path / "a.csv")
    bounds = {rule.key: rule.high for rule in rules.FRAMES if rule.name == "frames.time_range"}
    assert row["out_of_era"] == pytest.approx(1 / 7753)
    assert bounds["frames.time_range/warning"] < row["out_of_era"]
    assert row["out_of_era"] < bounds["frames.time_range/critical"]
