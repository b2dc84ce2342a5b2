"""The names of the experiment's files, prepared and evaluated, and of the companions in them."""

TASKS, ABOUT, BANDS = "tasks.safetensors", "about.json", "bands.json"
EXACT, PRIOR = "exact", "prior"  # what cannot be beaten, and what knows no context
