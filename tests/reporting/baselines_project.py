"""A hand-made wind_baselines: one set with its optimum, one without, sweeps, and the printed
rows of table 1.2 that stand beside."""

from pathlib import Path

import results_project
from results_project import PROFILE

EXPERIMENT = "wind_baselines"
HOME = Path("reports") / EXPERIMENT / PROFILE
CELLS = {
    "gp_wind": {
        "hour_average": (20.0, 19.0, 21.0),
        "persistence": (12.0, 11.0, 13.0),
        "kriging": (6.25, 6.0, 6.5),
        "optimum": (5.0, 4.5, 5.5),
    },
    "simulated": {
        "hour_average": (20.0, 18.0, 22.0),
        "persistence": (12.5, 12.0, 13.0),
        "gka-swept-none-s0": (9.5, 9.0, 10.0),
        "gka_tnn-cached-none-s0": (9.0, 8.0, 10.0),
        "gka_tnn-cached-none-s1": (9.4, 8.4, 10.4),
        "gka_tnn-requery-none-s0": (8.8, 8.0, 9.6),
        "gka_mlp_tnn-cached-none-s0": (8.0, 7.0, 9.0),
    },
}
TRIALS = (
    "draw,horizontal_km,places,noise,rmse_component_kn,state\n0,12.3,4,0.5,11.25,finished\n"
    "1,26.6,8,0.7,8.5,finished\n"
    "2,30.0,9,0.8,,pruned\n3,26.7,7,0.9,8.5,finished\n"
)
IMPORTANCE = (
    "argument,scale,importance,by\nhorizontal_km,log,0.5,PED-ANOVA\nplaces,linear,0.3,PED-ANOVA\n"
    "noise,log,0.2,PED-ANOVA\n"
)


def build(root: Path) -> None:
    """The experiment into `root`, the working folder; also where it stands beside others."""
    results_project.build(root, CELLS, EXPERIMENT)
    folder = HOME / "sweeps/simulated/gka"
    folder.mkdir(parents=True)
    (folder / "trials.csv").write_text(TRIALS)
    (folder / "importance.csv").write_text(IMPORTANCE)
    (folder / "best.yaml").write_text("sampler: tpe\n")
    with Path("data/published/b.csv").open("a") as stream:
        stream.write("thesis 1.2,x,wind_day1,hour_average,,,test,rmse,kn,min,26.19,,,\n")
    (HOME.parent / "companions.csv").write_text(
        "arm,table,model,variant,size\ngka_tnn-cached-none,thesis 1.2,gka_tnn,,\n"
        "hour_average,thesis 1.2,hour_average,,\n"
    )
