"""A lock's entry takes its place in the text as DVC would have written all of it."""

import copy
from pathlib import Path

import pytest
from dvc.utils.serialize import dumps_yaml, parse_yaml_for_update

from flows.locks import HEAD, put
from flows.parcels import entries

ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "reports/neighbours/dvc.lock", ROOT / "data/tokens/dvc.lock"]


def whole(text, name, change):
    """The oracle: all of the lock read, changed and written by DVC's own means."""
    data = parse_yaml_for_update(text, "dvc.lock")
    change(data["stages"], name)
    return dumps_yaml(data)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.parent.name)
def test_an_entry_is_replaced_or_added_as_dvc_would(lock):
    text = lock.read_text(encoding="utf-8")
    names = list(entries(lock))
    assert len(names) > 2
    for name in (names[0], names[1], names[-1]):
        entry = HEAD + f"  {name}:\n" + entries(lock)[name]
        assert put(text, entry) == text

        def changed(stages, name):
            stages[name]["cmd"] = "exec python -m stages.other " + " ".join(map(str, range(60)))

        def renamed(stages, name):
            stages["a-new@one"] = copy.deepcopy(stages[name])

        for change, of in ((changed, name), (renamed, "a-new@one")):
            expected = whole(text, name, change)
            data = parse_yaml_for_update(expected, "dvc.lock")
            made = dumps_yaml({"schema": "2.0", "stages": {of: data["stages"][of]}})
            assert expected != text and put(text, made) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        HEAD,
        HEAD + "  a:\n    cmd: b\n# a remark\n",
        HEAD + "  a:\n    cmd: b\ndatasets:\n- name: c\n",
        HEAD + "  a: &id001\n    cmd: b\n  c: *id001\n",
        "stages:\n  a:\n    cmd: b\n",
    ],
)
def test_another_form_is_left_to_dvc(text):
    assert put(text, HEAD + "  a:\n    cmd: c\n") is None
