"""The names of the experiment's files, prepared and evaluated, and of the companions in them."""

TASKS, ABOUT, PICTURE = "tasks.safetensors", "about.json", "picture.npz"
EXACT, EXACT_OFF, EXACT_ON, PRIOR = "exact", "exact_off", "exact_on", "prior"
COMPANIONS = {EXACT: "both", EXACT_OFF: "off", EXACT_ON: "on"}  # what each exact law reads
