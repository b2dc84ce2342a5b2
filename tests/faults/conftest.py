"""Faults: the twenty cases F1..F20 that the system must survive, and where each is tested.

Tests carry `@pytest.mark.fault("F4")`; `make test-faults` runs all of them, wherever they stand.
`slow_fault` marks what `make test` leaves out: there each fault is met once or twice, and here at
every point and with every damage. Most files here need a whole laboratory: `copy` is
one (lab.py), built once a session and copied for the test.

F1  killed group          test_killed_group; test_files, test_acquire, test_decode_stage,
                          test_evaluate_stage, test_code, test_command, test_intake_killed,
                          test_retrain
F2  killed dvc            test_killed_dvc; test_files, test_many
F3  killed download       test_download, test_acquire
F4  killed training       test_resume, test_set_training, test_group, test_orders_fitted
F5  killed report         test_killed_group; test_evaluate_stage, test_code, test_files
F6  full disk             test_full_disk; test_files, test_download, test_acquire
F7  two at once           test_killed_dvc; test_files, test_retrain, test_many, test_intake_killed,
                          test_judge, test_ledger, test_acquire
F8  bad servers           test_download, test_download_refused
F9  another digest        test_download_refused
F10 bit rot               test_bit_rot; test_resume, test_champions; test_audit_bytes,
                          test_audit_edits
F11 grids                 test_gridded, test_gridded_netcdf, test_cds; test_random_bytes
F12 Mode-S                test_modes_frames, test_decode, test_states, test_frame_rules;
                          test_random_bytes
F13 poisoned checkpoints  test_store, test_resume, test_darcy_sets, test_champions, test_security;
                          test_random_bytes
F14 archives, manifests   test_manifests; test_archive, test_archive_sizes, test_distant,
                          test_audit_edits; test_random_bytes
F15 params                test_params, test_command
F16 edges of the context  test_edges; test_laws
F17 too large             test_too_large
F18 divergence            test_loop, test_command, test_sweeps, test_files, test_evaluate_models,
                          test_judge; test_edges
F19 clocks and zones      test_clock; test_ledger, test_intake
F20 honesty, secrets      test_secrets; test_schedule, test_server_data, test_cds,
                          test_download_refused, test_doctor, test_judge, test_compare,
                          test_ledger; test_audit, test_audit_edits, test_audit_records
"""

import shutil
from pathlib import Path

import lab
import pytest


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The lab with its results; not to be changed."""
    base = tmp_path_factory.getbasetemp()
    return lab.shared(base.parent if base.name.startswith("popen-") else base)


@pytest.fixture
def copy(built, tmp_path):
    """A lab of the test's own, with its results, git and cache."""
    return Path(shutil.copytree(built, tmp_path / "lab", symlinks=True))
