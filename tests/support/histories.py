"""Runs for a history."""

import json

from jaxgate.ext.history.model import HistoryRun
from jaxgate.model.outcome import CaseRecord, RunRecord, TimeRecord
from jaxgate.model.verdict import BaselineName, Figures

FOLDER = "cpu-amd-epyc-1-jax-0.10"
COMMIT = "5aa7a3fe294cd31197565ca014860cb587362288"
CASE = "scan/rnn"
ENVIRONMENT = {"jax": "0.10.2", "python": "3.11"}
BASELINE = BaselineName(program="0" * 32, folder=FOLDER, commit=None, date="2026-11-20")


def case(name=CASE, *, temp_bytes=4_000.0, run_ns=1_234.5, status="SAME", hardware="cpu-amd-epyc-1", **changes):
    """A case of a run, with two facts, a phase and a time."""
    now = {"temp_bytes": temp_bytes, "traces": 1.0, "compile_ns": 50_000_000.0, "run_ns": run_ns}
    figures = Figures(now=now, environment=ENVIRONMENT, program="p" * 32, baseline=BASELINE)
    time = changes.pop("time", TimeRecord(status="SAME", ratio=1.01, low=0.99, high=1.03))
    about = {"figures": figures, "time": time, "fails": status == "REGRESSED"} | changes
    return CaseRecord(case=name, status=status, hardware=hardware, **about)


def run(number=1, *cases, **changes):
    """Run number so and so, a minute after the one before; of one case where none are given."""
    about = {"schema": 1, "jaxgate": "0.1.0", "green": True, "gate_exit": 0, "commit": COMMIT}
    about |= {"run": f"run-{number:04}", "moment": f"2026-11-25T{number // 60:02}:{number % 60:02}:00+00:00"}
    return RunRecord(cases=cases or (case(),), **(about | changes))


def runs_of(store):
    """The runs of a history without their points, oldest first."""
    query = 'SELECT run, moment, "commit", about FROM jaxgate_runs ORDER BY moment, id'
    return store._rows(query, {}, lambda row: HistoryRun(**json.loads(row.pop("about")), **row))
