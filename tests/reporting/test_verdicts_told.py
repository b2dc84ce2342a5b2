"""The verdicts that FINDINGS tells, one by one: each is that of the claim, in the experiment, the
profile and the data set that the sentence speaks of."""

import re
from pathlib import Path

from stages.files import read_json

ROOT = Path(__file__).resolve().parents[2]
CLAIM = re.compile(r"\b([A-Z]{1,2}\d?-\d+)\b")
VERDICT = re.compile(r"\b(holds?|fails?|undecided)\b|not decided")
END = re.compile(r"[.?!]\**\s+(?=[-*]|[A-Z`])")  # of a sentence
WORDS = {"hold": "holds", "fail": "fails", "not decided": "undecided"}

# in the order of the text: the claim, its verdict, and where it stands
TOLD = """
I-5 fails wind_nowcast/sample/sky_44_days
I-12 holds wind_nowcast/sample/sky_44_days
I-1 undecided wind_nowcast/sample/sky_44_days
W-1 undecided wind_baselines/sample/hour_winds
W-1 undecided wind_baselines/mini/simulated
I-2 undecided sparse_fields/sample/poisson_rooms
I-4 undecided sparse_fields/sample/poisson_rooms
I-15 undecided sparse_fields/sample/poisson_rooms
I-15 undecided sparse_fields/sample/navier_stokes
I-6 undecided failure_modes/sample/copies
I-7 fails failure_modes/sample/sines_1
I-8 undecided failure_modes/sample/sines_1
I-13 undecided failure_modes/sample/darcy_overlap
D-4 holds chaos/mini/l96_f10
D-5 undecided chaos/mini/l96_f10
A-2 undecided any_order/sample/mazes_large
A-1 undecided any_order/sample/mazes_large
A-8 undecided any_order/sample/mazes_large
A-6 undecided any_order/sample/mazes_large
A-9 fails any_order/sample/mazes_large
A-1 undecided any_order/sample/climbs_real
A-10 undecided any_order/sample/climbs_real
P-7 fails processes/sample/eq_1d
P-2 undecided processes/sample/sawtooth_1d
P-9 undecided processes/sample/sawtooth_1d
P-6 fails processes/sample/sawtooth_2d
P-5 holds processes/sample/sawtooth_2d
E-2 fails on_off_grid/mini/dual_80
E-5 fails on_off_grid/mini/dual_80
E-1 undecided on_off_grid/mini/dual
E-3 fails on_off_grid/mini/dual_80
E-9 undecided on_off_grid/mini/globe
E-8 undecided on_off_grid/mini/era5
E-2 fails on_off_grid/sample/dual_80
E-5 fails on_off_grid/sample/dual_80
E-3 fails on_off_grid/sample/dual_80
E-1 holds on_off_grid/sample/dual
E-4 undecided on_off_grid/sample/britain
E-6 undecided on_off_grid/sample/britain
E-10 undecided on_off_grid/mini/globe
O2-1 holds joint_nowcast/mini/joint_sky
O2-2 holds joint_nowcast/mini/joint_sky
O2-3 fails joint_nowcast/mini/joint_sky
O2-1 undecided joint_nowcast/sample/joint_era5
O2-3 undecided joint_nowcast/sample/joint_era5
H-7 fails token_mixing/mini/sentence_pairs
H-8 fails token_mixing/mini/sentence_pairs
H-5 holds shapes/sample/shapes_404
H-10 undecided pictures/mini/pictures
H-2 undecided token_mixing/sample/sst2
H-9 holds shapes/sample/shapes_27000
H-5 holds shapes/sample/shapes_404
H-8 fails token_mixing/sample/sentence_pairs_48000
H-7 undecided token_mixing/sample/sentence_pairs_48000
H-4 undecided token_mixing/mini/sentence_pairs
H-10 undecided token_mixing/sample/pictures_12_16
H-10 holds pictures/sample/pictures_12_16
"""


def mentions(text: str) -> list[tuple[str, str]]:
    """The claims that a text gives a verdict on in the same sentence: claim and verdict, in order.
    The verdict nearest behind a claim is its own."""
    found = []
    for sentence in END.split(" ".join(text.split())):
        for claim in CLAIM.finditer(sentence):
            said = VERDICT.search(sentence, claim.end())
            if said:
                found.append((claim[1], WORDS.get(said[0], said[0])))
    return found


def told() -> list[tuple[str, str, str]]:
    """The rows of TOLD."""
    return [tuple(line.split()) for line in TOLD.split("\n") if line]


def test_mentions_are_found():
    """Of several claims with one verdict each is one; a verdict before a claim is another's."""
    text = "A-1, which asks, fails. So E-2 and E-5 hold; A-3. It holds (D-4 is not decided)."
    assert mentions(text) == [("A-1", "fails"), ("E-2", "holds"), ("E-5", "holds"),
                              ("D-4", "undecided")]  # fmt: skip


def test_every_verdict_of_the_findings_is_the_claims():
    text = (ROOT / "reports/FINDINGS.md").read_text()
    assert mentions(text) == [(claim, verdict) for claim, verdict, _ in told()]
    wrong = []
    for claim, verdict, where in told():
        experiment, profile, dataset = where.split("/")
        known = [entry["verdict"]
                 for entry in read_json(ROOT / f"reports/{experiment}/{profile}/claims.json", list)
                 if (entry["id"], entry["dataset"]) == (claim, dataset)]  # fmt: skip
        if known != [verdict]:
            wrong.append(f"{claim} of {where}: told {verdict}, found {known}")
    assert not wrong, "\n".join(wrong)
