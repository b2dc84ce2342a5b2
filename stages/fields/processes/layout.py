"""The names of the experiment's files: prepared, evaluated."""

TASKS, ABOUT, BANDS = "tasks.safetensors", "about.json", "bands.json"
