"""Which of several challengers faces the champion: the one that errs least on the validation
slices.

The test slices have no say in the choice, so that their verdict is that of one comparison, not the
best of many. A cell that cannot be asked, or to which it does not matter where the winds of its
context were measured, is not chosen. Errors are RMSE per component in kn.
"""

from typing import Any

import numpy as np

from stages.errors import DataError
from stages.params import Params
from stages.units import KNOT_M_S
from stages.winds.retraining import compare
from stages.winds.retraining.place import Place, loaded


def choose(
    place: Place, parameters: Params, data: compare.Prepared
) -> tuple[str, list[dict[str, Any]]]:
    """The challenger, EXPERIMENT/CELL, and what each of those declared was found to be: cell,
    validation_kn where it answered, reasons for which it is not chosen.

    Where none can be chosen it is the first, and the judgement tells why it is refused. One alone
    needs no choice: the list is empty.
    """
    declared = parameters.retraining.challengers
    if len(declared) == 1:
        return declared[0], []
    table = [about(place, parameters, data, address) for address in declared]
    fit = [one for one in table if not one["reasons"]]
    best = min(fit, key=lambda one: one["validation_kn"], default=table[0])
    return str(best["cell"]), table


def about(place: Place, parameters: Params, data: compare.Prepared, address: str) -> dict[str, Any]:
    """One line of the table of `choose`."""
    from stages.batches import device

    compare.torch.set_num_threads(parameters.training.threads)
    try:
        side = loaded(place, "challenger", address)
    except DataError as error:
        return {"cell": address, "reasons": [f"It cannot be used: {error.what} ({error.found})."]}
    chosen = compare.evaluation(data, -np.inf, "val")
    reasons = compare.unlike({side.name: side.meta}, data)
    if reasons:
        return {"cell": address, "reasons": reasons}
    given, reasons = compare.asked(
        side.name, side.net, side.meta, data, chosen, parameters.contexts, str(device())
    )
    if given is None or reasons:
        return {"cell": address, "reasons": reasons}
    error = np.sqrt(((given.mean - compare.measured_of(data, chosen)) ** 2).mean()) / KNOT_M_S
    return {
        "cell": address,
        "validation_kn": round(float(error), 6),
        "reasons": compare.indifferent(given, data, chosen),
    }
