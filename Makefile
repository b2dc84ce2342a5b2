# Two commands do everything: `make repro` (results) and `make test` (tests). Both set the environment up first.
# VENV=folder puts the environment elsewhere; PROFILE=sample runs another profile; JOBS=n stages run at once under Prefect
# (then one plain serial `dvc repro` as proof), JOBS=1 is that plain `dvc repro` alone: the same results, later.

VENV    ?= .venv
PYTHON  ?= $(shell command -v python3.11 || echo python3)
PROFILE ?=
JOBS    ?= 2
ARGS    ?=
UNITS    = tests/structure/test_layers.py tests/structure/test_sizes.py $(wildcard tests/test_*.py tests/doctor/test_*.py) tests/preparation/test_modes_bits.py
BENCHES  = bench-decode bench-prepare bench-model bench-fields bench-sequences bench-neighbours bench-processes bench-grids bench-tokens bench-dynamics bench-flow bench-nearest bench-stream bench-dag
# Benchmarks that have no shorter form pass over --quick, so that `make bench ARGS=--quick` runs them, too.
LONG     = $(filter-out --quick,$(ARGS))
BIN      = $(VENV)/bin
READY    = $(VENV)/.tradewind-ready
PIP      = $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile

# Telemetry of every tool is off, for whoever runs this.
export DVC_NO_ANALYTICS=1
export DO_NOT_TRACK=1
export PREFECT_SERVER_ANALYTICS_ENABLED=false
export GX_ANALYTICS_ENABLED=false
export MPLBACKEND=Agg
# Hundreds of processes load the same libraries: what Python compiles of them is kept.
export PYTHONDONTWRITEBYTECODE=
export PATH := $(abspath $(BIN)):$(PATH)

.PHONY: help setup try repro check test test-faults test-torch release schedule doctor bench $(BENCHES) bench-audit clean

help:
	@echo "make try                                          a nowcast to look at, before anything is trained"
	@echo "make repro [PROFILE=mini|sample|full] [JOBS=2]   regenerate every result of a profile"
	@echo "make check                                        format, lint, types, imports, units: for every change"
	@echo "make test                                         run the tests"
	@echo "make test-faults                                  only what must survive kills, bad input and lies"
	@echo "make test-torch TORCH=2.12.1                      models and arithmetic under another torch"
	@echo "make release [FOLDER=.work/release]               a citable bundle of this commit"
	@echo "make schedule                                     retrain on new captures by a schedule, until Ctrl-C"
	@echo "make doctor                                       what is amiss with this machine, and what mends it"
	@echo "make bench                                        speed and memory, as ratios in one run"
	@echo "make bench-NAME [ARGS=--quick]                    one of: $(patsubst bench-%,%,$(BENCHES)) audit; ARGS=--help tells what it takes"
	@echo "make setup                                        only create the environment"

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@echo "setting up $(VENV): a minute or two, longer where packages must be downloaded"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@xargs -P 2 -n 118 $(PIP) --no-deps < constraints.txt 2>/dev/null || true # a head start, two at once
	@$(PIP) -c constraints.txt -e '.[lab,test]'
	@$(PIP) --no-deps roc-validator==0.13.0 rich-click==1.8.9 enum-tools==0.13.0
	@touch $@

# The best model of the simulated sky, asked for a level.
try: $(READY)
	@mkdir -p .work
	@$(BIN)/tradewind try --plot .work/nowcast.png

repro: $(READY)
	@if [ "$(JOBS)" != 1 ]; then \
	  $(BIN)/python -m flows.repro --jobs $(JOBS) $(if $(PROFILE),--profile $(PROFILE)); \
	else \
	  $(BIN)/python -m flows.profiles $(PROFILE) -- "$(abspath $(BIN))/dvc" --wait-for-lock repro; \
	fi
	@if git rev-parse --quiet --verify HEAD >/dev/null 2>&1; then echo; $(BIN)/tradewind compare; fi

# What a change is held to while it is made; `make test` runs it too.
check: $(READY)
	$(BIN)/ruff format --check --quiet stages flows tests
	$(BIN)/ruff check --quiet stages flows tests
	$(BIN)/mypy --cache-dir .work/mypy --no-error-summary
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow_fault" $(UNITS)

# Files by name: sorted by their counts of tests, those with few and long ones would come last, and one core would wait. Three
# workers for two cores: tests that start processes wait an eighth of the time.
test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m "not slow_fault"

# Faults F1 to F20 (tests/faults/conftest.py says where each is tested), and what else
# `make test` leaves out for its time.
test-faults: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal -m "fault or slow_fault"

# The models' laws and the arithmetic under another torch, the rest as it is: TORCH=2.12.1 and TORCH=2.14.1 are the ends of what the
# package takes (pyproject.toml); the laboratory's results are made with that of constraints.txt.
test-torch: OTHER = .work/torch-$(TORCH)
test-torch: $(READY)
	@test -n "$(TORCH)" || { echo "error: which torch? TORCH=2.12.1, for one" >&2; exit 2; }
	@$(PYTHON) -m venv $(OTHER)
	@$(OTHER)/bin/python -m pip install -qq --disable-pip-version-check --no-compile torch==$(TORCH)
	@$(BIN)/python -c "import sysconfig; print(f'import sys; sys.path.append({sysconfig.get_path(\"purelib\")!r})')" \
	  > $$(echo $(OTHER)/lib/python*/site-packages)/after.pth
	@$(OTHER)/bin/python -c "import torch; assert torch.__version__.startswith('$(TORCH)'), torch.__version__; print('torch', torch.__version__)"
	$(OTHER)/bin/python -m stages.cli doctor --arithmetic
	OMP_NUM_THREADS=1 $(OTHER)/bin/python -m pytest -n 2 --dist loadfile -m "not slow_fault" tests/layers tests/models tests/test_arithmetic.py tests/test_products.py tests/test_kernels.py

# FOLDER lies outside of what git watches.
release: $(READY)
	$(BIN)/tradewind release $(or $(FOLDER),.work/release)

# A Prefect server on loopback and the retraining deployment (flows/schedule.py); ARGS="--help" lists what can be set.
schedule: $(READY)
	$(BIN)/python -m flows.schedule $(ARGS)

doctor: $(READY)
	$(BIN)/tradewind doctor

# Benchmarks time the kernels that each machine has.
$(filter-out bench-dag,$(BENCHES)): export TRADEWIND_ARITHMETIC := native

bench: $(BENCHES)

bench-decode: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_decode $(LONG)

bench-prepare: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_prepare $(LONG)

bench-model: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_msa $(LONG)

# Every model of chapter 3 beside torch's encoder, and figure C.4, which the report shows from reports/sparse_fields/<profile>/benchmarks.json;
# six minutes on an idle machine. ARGS="--size 100k --json FILE" and the like.
bench-fields: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_fields $(if $(PROFILE),--profile $(PROFILE)) $(ARGS)

# Cached decoding, bursts, training and the shuffle as ratios; writes .work/bench/sequences.json. Trained cells of mini are timed where there are any.
bench-sequences: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_sequences $(ARGS)

# Writes reports/neighbours/<profile>/benchmarks.json, which the report shows; about ten minutes on an idle machine.
bench-neighbours: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_neighbours $(if $(PROFILE),--profile $(PROFILE)) $(LONG)

# Neural processes beside the same written straightforwardly, time and memory; minutes. ARGS="--quick" and the like.
bench-processes: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_processes $(ARGS)

# The grid model beside the same written straightforwardly and the TNP of all tokens, time and memory; three minutes on an idle machine.
# ARGS=full: a step on the full grid, by which E-8 is judged (reports/on_off_grid/mini/benchmarks.json); ten minutes.
bench-grids: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_grids $(ARGS)

bench-tokens: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_tokens $(ARGS)

# Cells, free runs and a reservoir beside their goals, met or missed; two minutes on an idle machine.
bench-dynamics: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_forecasts $(ARGS)

# The divergence and the spectrum of a nowcast's field with and without a stream function, beside the truth's; a minute on an idle machine.
bench-flow: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_flow $(ARGS)

# K-nearest attention over 100,000 and a million winds of context, its neighbours beside brute force; a minute on an idle machine.
bench-nearest: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_nearest $(ARGS)

# One more message and an answer at 10,000 winds of context, beside the batch answer; a minute on an idle machine.
bench-stream: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_stream $(ARGS)

# Every attack of tests/audit on this clone's mini results, at every depth until it falls; writes reports/attacks.json, which the report shows.
bench-audit: $(READY)
	$(BIN)/python -m tests.benchmarks.bench_audit $(ARGS)

# What DVC and Prefect cost on top of the work, on stub stages and on this project's own DAG.
bench-dag: $(READY)
	$(BIN)/python -m flows.bench $(LONG)

# What no other place has is not removed: captures that wait, runs set aside, a killed run's switch of the profile.
clean:
	@for kept in .work/retraining/incoming .work/leftovers .work/profile; do \
	  if [ -n "$$(ls -A $$kept 2>/dev/null)" ]; then \
	    echo "error: $$kept holds what no other place has; any flow heals a profile, take the rest out first" >&2; exit 2; \
	  fi; \
	done
	rm -rf $(VENV) .work build *.egg-info
