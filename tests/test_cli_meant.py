"""A verb or an option that there is not is told first, with the one that was meant."""

import sys

import pytest

from stages import cli

POINT = "46.5,7.2,34000,2026-01-17T05:00:00Z"


def run(monkeypatch, *arguments: str) -> int:
    """The exit status of `tradewind ARGUMENTS`, wherever it is decided."""
    monkeypatch.setattr(sys, "argv", ["tradewind", *arguments])
    try:
        return cli.main()
    except SystemExit as end:
        return end.code


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("nowcats", "did you mean 'nowcast'?"),
        ("veryfy", "did you mean 'verify'?"),
        ("xyz", "known: audit"),
    ],
)
def test_a_verb_that_there_is_not_is_told_with_the_nearest(monkeypatch, capsys, typed, says):
    assert run(monkeypatch, typed) == 2
    assert f"there is no verb '{typed}'" in (told := capsys.readouterr().err) and says in told


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        (("nowcast", "--contxt", "x"), "no option '--contxt'; did you mean '--context'?"),
        (("nowcast", "--contxt=my x.csv", "--at", POINT), "no option '--contxt'; did you mean"),
        (("nowcast", "--context", "x", "--at", "-1,-2,3,4", "--modle", "knn"), "mean '--model'?"),
        (("biases", "--outt", "x"), "no option '--outt'; did you mean '--out'?"),
        (("--verson",), "no option '--verson'; did you mean '--version'?"),
        (("try", "-x"), "no option '-x' (known: --help, --plot, -h)"),
    ],
)
def test_an_option_that_there_is_not_is_told_before_what_is_lacking(
    monkeypatch, capsys, typed, says
):
    assert run(monkeypatch, *typed) == 2
    told = capsys.readouterr().err
    assert says in told and "required" not in told


def test_an_option_may_be_shortened_and_a_value_may_begin_with_a_sign():
    words = ["nowcast", "--cont", "-", "--at=-1,2,FL340,0", "--mod", "-9"]
    told = cli.parser().parse_args(words)
    assert (told.context, told.at, told.model) == ("-", ["-1,2,FL340,0"], "-9")
    assert cli.parser().parse_args(["init", "--", "--odd.csv"]).file == "--odd.csv"
