"""A nowcast of the toy airspace, asked in one way."""

from stages.winds.nowcast import nowcast

ASKED = "46.5,7.0,25000,2026-01-15T07:08:00Z"


def ask(airspace, settings, *at, **more):
    more.setdefault("model", airspace / "reports/wind_nowcast/mini/runs/toy/msa-gaussian-5k-s0")
    return nowcast.nowcast(
        more.pop("context", airspace / "winds.parquet"),
        at=list(at) or None,
        settings=settings,
        **more,
    )
