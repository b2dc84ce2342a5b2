"""The forgeries: what a forger does, and where it falls."""

from audit_project import DATA, REPORTS, RUN, TABLE, agree, commit, number_of, relock
from forger import (
    COUNTS,
    EVALUATE,
    FRAMES,
    LOCK,
    OTHER,
    ROWS,
    TRAIN,
    Forgery,
    another_run,
    changed,
    code_claimed,
    code_of_another_meaning,
    code_of_no_commit,
    code_of_old,
    evaluated_anew,
    exchanged,
    halved,
    inputs_of_old,
    left_out,
    listed_without,
    lived,
    lock_of_decoding,
    lock_of_the_split,
    lock_of_the_table,
    modules_left_out,
    object_replaced,
    pinned,
    put,
    raw_with_its_manifest,
    record,
    says,
    table_says,
    then,
)
from forgery_edges import EDGES

SPLIT = ("train: [[1860, 18000]]", "train: [[1860, 27000]]")
OTHER_DRAWS = (
    "from stages import fake\ntrue = fake.np.random.default_rng\n"
    "fake.np.random.default_rng = lambda seed: true(seed + 1)\n"
)
PICTURE = f"{REPORTS}/figures/by_lead.svg"
FORGERIES = (
    Forgery(
        "an edited lock",
        "record",
        f"{DATA}/decoded/simulated",
        "stale",
        then(lock_of_decoding, commit),
    ),
    Forgery(
        "an edited metric", "record", TABLE, "edited by hand", then(table_says(value=1.5), commit)
    ),
    Forgery(
        "an edited metric with a matching lock",
        "record",
        TABLE,
        "recorded",
        then(table_says(value=1.5), lock_of_the_table, commit),
    ),
    Forgery(
        "an edited metric with matching record and lock",
        "record",
        TABLE,
        "value",
        then(table_says(value=1.5), agree),
    ),
    Forgery(
        "an edited metric in table, evaluation, records, locks",
        "eval",
        TABLE,
        "published is 1.5",
        then(says(value=1.5), agree),
    ),
    Forgery(
        "a swapped checkpoint",
        "hash",
        f"{RUN}/weights.safetensors",
        "not those recorded",
        put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"),
    ),
    Forgery(
        "a swapped checkpoint with its record",
        "record",
        TRAIN,
        "outputs of another place",
        then(
            put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"),
            put(TRAIN, TRAIN.replace("-s0", "-s1")),
            relock,
        ),
    ),
    Forgery(
        "a swapped checkpoint, all else agreeing",
        "eval",
        TABLE,
        "published is",
        then(put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"), agree),
    ),
    Forgery(
        "a swapped checkpoint with numbers to match",
        "train",
        f"{RUN}/weights.safetensors",
        "gives other weights",
        then(
            put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors"), evaluated_anew, agree
        ),
    ),
    Forgery(
        "a re-labelled seed",
        "record",
        TRAIN,
        "named for seed 0, its record says seed 1",
        then(record(TRAIN, lambda one: one.update(seed=1)), agree),
    ),
    Forgery(
        "a truncated evaluation set",
        "record",
        ROWS,
        "it has 20 bytes, recorded are 40",
        halved(ROWS),
    ),
    Forgery(
        "a truncated evaluation set, all agreeing",
        "eval",
        TABLE,
        "n 5, published is 10",
        then(halved(ROWS), agree),
    ),
    Forgery(
        "a changed split",
        "record",
        "params.yaml",
        "stale: prepare",
        then(changed("params.yaml", *SPLIT), commit),
    ),
    Forgery(
        "a changed split with its lock",
        "record",
        f"{DATA}/records/simulated.prepare.json",
        "says train =",
        then(changed("params.yaml", *SPLIT), lock_of_the_split, commit),
    ),
    Forgery(
        "other code with the same digest claimed",
        "record",
        TRAIN,
        "digest is not that of its list",
        then(changed("stages/training/__init__.py", "training", "another"), code_of_old, relock),
    ),
    Forgery(
        "bytes of code that no commit holds",
        "record",
        TRAIN,
        "that no commit holds",
        then(code_of_no_commit, relock),
    ),
    Forgery(
        "bytes of code that mean something else than the digest",
        "record",
        TRAIN,
        "mean another code than its digest tells",
        then(code_of_another_meaning, relock),
        before=lived,
    ),
    Forgery(
        "a record that leaves its module out",
        "record",
        TRAIN,
        "lacks the module stages.training.train",
        then(modules_left_out, relock),
    ),
    Forgery(
        "other code claimed to have trained",
        "train",
        f"{RUN}/weights.safetensors",
        "gives other weights",
        then(
            changed("stages/training/train.py", "from stages import fake\n", OTHER_DRAWS),
            code_claimed,
            agree,
        ),
    ),
    Forgery(
        "a back-dated record: an earlier run's beside newer outputs",
        "record",
        f"{RUN}/history.json",
        "but train",
        then(put(TRAIN, "earlier.json"), relock),
        before=another_run,
    ),
    Forgery(
        "a record that names inputs of an earlier version",
        "record",
        f"{RUN}/weights.safetensors",
        "read aaaaaaaaaaaa",
        then(inputs_of_old, relock),
    ),
    Forgery(
        "parameters edited in a record",
        "record",
        TRAIN,
        "steps = 9000, the parameters say 1500",
        then(record(TRAIN, lambda one: one["params"].update(steps=9000)), agree),
    ),
    Forgery(
        "parameters edited with the lock",
        "record",
        TRAIN,
        "steps = 1500, the parameters say 9000",
        then(
            changed("params.yaml", "steps: 1500", "steps: 9000"),
            lambda project: (
                (project / LOCK).write_text(
                    (project / LOCK).read_text().replace("steps: 1500", "steps: 9000")
                )
                and None
            ),
            commit,
        ),
    ),
    Forgery(
        "a record copied from another experiment",
        "record",
        EVALUATE,
        "outputs of another place",
        then(put(EVALUATE, EVALUATE.replace("wind_nowcast", "sensor_noise")), relock),
    ),
    Forgery(
        "an edited printed value",
        "record",
        "data/published/thesis_table_1_2.csv",
        "SHA-256",
        then(changed("data/published/thesis_table_1_2.csv", "8.1", "9.1"), commit),
    ),
    Forgery(
        "another companion",
        "record",
        "reports/wind_nowcast/companions.csv",
        "SHA-256",
        then(changed("reports/wind_nowcast/companions.csv", "knn", "msa"), commit),
    ),
    Forgery(
        "an edited verdict of a claim",
        "record",
        f"{REPORTS}/claims.json",
        "edited by hand",
        then(changed(f"{REPORTS}/claims.json", "true", "null"), commit),
    ),
    Forgery(
        "an edited verdict of a claim, all agreeing",
        "all",
        f"{REPORTS}/claims.json",
        "derived again",
        then(changed(f"{REPORTS}/claims.json", "true", "null"), agree),
    ),
    Forgery(
        "an edited cell of the table",
        "record",
        f"{REPORTS}/table.md",
        "edited by hand",
        then(changed(f"{REPORTS}/table.md", "a table", "A table"), commit),
    ),
    Forgery(
        "an edited cell of the table, all agreeing",
        "all",
        f"{REPORTS}/table.md",
        "derived again",
        then(changed(f"{REPORTS}/table.md", "a table", "A table"), agree),
    ),
    Forgery(
        "a figure replaced by another picture",
        "record",
        PICTURE,
        "recorded",
        then(put(PICTURE, f"{REPORTS}/figures/map.png"), commit),
    ),
    Forgery(
        "a replaced cache object",
        "hash",
        f"{RUN}/weights.safetensors",
        "cache is damaged",
        object_replaced,
    ),
    Forgery(
        "a replaced cache object and working copy",
        "hash",
        f"{RUN}/weights.safetensors",
        "not those recorded",
        then(object_replaced, put(f"{RUN}/weights.safetensors", f"{OTHER}/weights.safetensors")),
    ),
    Forgery(
        "a manifest that leaves out a file",
        "hash",
        f"{DATA}/raw/simulated",
        "manifest in DVC's cache is damaged",
        listed_without,
    ),
    Forgery(
        "a manifest that leaves out a file, with its lock",
        "hash",
        FRAMES,
        "manifest does not list it",
        then(left_out, commit),
    ),
    Forgery(
        "re-labelled libraries",
        "record",
        TRAIN,
        "numpy 0.9",
        verdict="INCONCLUSIVE",
        forge=then(
            record(TRAIN, lambda one: one["environment"]["libraries"].update(numpy="0.9")), agree
        ),
    ),
    Forgery(
        "re-labelled libraries, carelessly",
        "record",
        TRAIN,
        "edited by hand",
        then(
            record(TRAIN, lambda one: one["environment"]["libraries"].update(numpy="0.9")), commit
        ),
    ),
    Forgery(
        "a raw file swapped with the manifest",
        "record",
        FRAMES,
        "datasets.simulated pins",
        then(raw_with_its_manifest, agree),
        before=pinned,
    ),
    Forgery(
        "numbers of two models exchanged",
        "record",
        TABLE,
        "the table does not say what the evaluation says",
        then(exchanged, agree),
    ),
    Forgery(
        "a changed unit",
        "eval",
        TABLE,
        "unit 'kn', published is 'm/s'",
        then(says(unit="m/s"), agree),
    ),
    Forgery(
        "a changed count", "eval", TABLE, "n 10, published is 1000000", then(says(n=10**6), agree)
    ),
    Forgery(
        "a narrowed interval",
        "eval",
        TABLE,
        "low ",
        then(lambda project: says(low=number_of(project) - 0.1)(project), agree),
    ),
    Forgery(
        "an edited count of dropped rows",
        "hash",
        COUNTS,
        "not those recorded",
        then(changed(COUNTS, "10", "11"), changed(COUNTS, "10", "11")),
    ),
    Forgery(
        "an edited count of dropped rows, all agreeing",
        "record",
        COUNTS,
        "do not add up",
        then(changed(COUNTS, '"kept": 10', '"kept": 11'), agree),
    ),
    *EDGES,
)
