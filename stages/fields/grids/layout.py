"""The names of the experiment's files, prepared and evaluated, and of the companions in them."""

TASKS, ABOUT, PICTURE = "tasks.safetensors", "about.json", "picture.npz"
HOURS = "hours.safetensors"  # of real fields: those that train
# Of the whole globe: what trains; the field at all nodes; what a model says at all of them.
WORLD, GLOBE, MAP = "world.safetensors", "globe.safetensors", "map.npz"
EXACT, EXACT_OFF, EXACT_ON, PRIOR = "exact", "exact_off", "exact_on", "prior"
PERSISTENCE, INVERSE_DISTANCE = "persistence", "inverse_distance"
KRIGING, CLIMATOLOGY = "kriging", "climatology"
# Companions and the laws that preparation kept of them: what each exact law reads; rivals.
COMPANIONS = {EXACT: "both", EXACT_OFF: "off", EXACT_ON: "on", PERSISTENCE: "persistence",
              INVERSE_DISTANCE: "inverse_distance", KRIGING: "kriging",
              CLIMATOLOGY: "climatology"}  # fmt: skip
