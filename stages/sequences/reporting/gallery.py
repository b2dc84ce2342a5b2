"""All figures of an experiment on sequences in any order: which are drawn of which data set,
under which names (thesis 4.3, D.1)."""

from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

from stages.files import atomic_folder, read_json
from stages.sequences.reporting import bias as order_bias
from stages.sequences.reporting import figures as order_figures
from stages.sequences.reporting import flights, mazes
from stages.sequences.reporting import infill as order_infill
from stages.sequences.reporting import map as order_map
from stages.sequences.reporting import sizes as order_sizes
from stages.sequences.reporting.canvas import colour, worded


def draw(home: Path, prepared: Path, content: dict[str, Any]) -> None:
    """All figures of an experiment and profile into `home`/figures; `content` is its
    metrics.json."""
    cells, told = content["cells"], content["about"]
    with atomic_folder(home / "figures") as folder:
        order_sizes.draw(cells, told, colour, folder)
        for dataset, about in told.items():
            if about.get("held_out"):  # it is there for its number of training sequences alone
                continue

            def of(name, dataset=dataset):
                return folder / f"{dataset}-{name}.png"

            law = read_json(prepared / dataset / "sequences.json")["law"]
            file = home / "evaluated" / dataset / "samples.safetensors"
            tensors = load_file(file) if file.exists() else {}
            if tensors and about["kind"] == "maze":
                mazes.mazes(tensors, cells, dataset, law, of("mazes"))
                mazes.strip(tensors, cells, dataset, about, law, of("strip"))
            if tensors and about["kind"] == "climb":
                flights.climbs(tensors, cells, dataset, law, of("climbs"))
            order_infill.draw(tensors, about["kind"], law, of("infilled"))
            order_map.draw(tensors, cells, dataset, of("map"), colour, worded)
            order_figures.passes(cells, about, dataset, of("passes"))
            order_figures.learning(cells, about, dataset, of("learning"))
            order_figures.densities(cells, about, dataset, of("densities"))
            order_bias.figure(about.get("bias", {}), of("bias"))
