"""Several processes, for real: the same command on each, over CPU collectives; the rest of their rules is tested in one."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from types import MappingProxyType

import pytest
from support.corpora import nightly
from support.histories import runs_of
from support.paths import REPOSITORY
from support.projects import NO_OTHERS

from jaxgate.ext.history.model import HISTORY_PLACE
from jaxgate.ext.history.store import HistoryStore, find_place

SOURCES = str(REPOSITORY / "src")
LIMIT_S = 400
FILE = "test_job.py"
HEAD = """
import os, signal, time
import jax, jax.numpy as jnp, numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from jaxgate import Batch, Growth, grows

RANK = int(os.environ.get("RANK", "0"))  # before any gate a serial run must not touch a device
X = np.arange(64, dtype=np.float32).reshape(16, 4) / 64

def spread(*spec):
    mesh = Mesh(np.array(jax.devices()), ("x",))
    return mesh, jax.make_array_from_callback(X.shape, NamedSharding(mesh, P(*spec)), lambda index: X[index])
"""
LOCAL = """
def test_local(gate):
    gate(lambda x: jnp.tanh(x @ x.T).sum(), jnp.asarray(X))

def test_state(gate):
    gate(lambda state, x: state + x.sum(0), jnp.zeros(4), jnp.asarray(X), donate="state")
"""
SPREAD = """
def test_psum(gate):
    mesh, x = spread("x")
    total = jax.shard_map(lambda x: jax.lax.psum((x * x).sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    def at(rows):
        return (jax.ShapeDtypeStruct((rows, 4), x.dtype, sharding=x.sharding),)
    grow = Growth(at, rows=[16, 32, 64], claims=[grows("collectives", "rows") <= 0])
    gate(jax.jit(total), x, reference=lambda x: (x * x).sum(), exact_collectives=1, grow=grow)

def test_by_parts(gate):
    _, x = spread("x")
    gate(jax.jit(lambda x: x * 2), x, reference=jax.jit(lambda x: x + x), batch=Batch(argument=0, size=16))

def test_loop(gate):
    _, x = spread("x")
    total = jax.jit(lambda x: x.sum())
    gate(lambda x: float(total(x)), x, eager=True)
"""
ENDS = """
FAULT = os.environ["FAULT"]

def test_before(gate):
    gate(lambda x: x + 1, jnp.ones(3))

def stop():
    if FAULT == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    open("hangs", "w").close()
    time.sleep(600)

def test_stuck(gate):
    _, x = spread("x")
    total, calls = jax.jit(lambda x: x * x.sum()), []
    def step(x):
        calls.append(1)
        if RANK == 1 and len(calls) == 12:
            stop()
        return total(x)
    gate(step, x, eager=True)

def test_after(gate):
    gate(lambda x: x + 2, jnp.ones(3))
"""

NO_PROGRESS = """
import os
from jaxgate.ext.ranks.barrier import RankBarrier

TICK = RankBarrier.tick

def tick(station):
    if os.path.exists("hangs") and not station.rank:
        station.progressed = station._clock() - station.timeout_s
    TICK(station)

RankBarrier.tick = tick
"""
"""The limit is over as soon as a rank hangs, and never before, however busy this machine is."""


class Job:
    """What the processes of one job said, and how they ended."""

    def __init__(self, texts, codes):
        self.texts, self.codes = texts, codes

    def shows(self, rank, *pieces):
        """Assert that every piece is in what a rank said."""
        for piece in pieces:
            assert piece in self.texts[rank], f"{piece!r} is not in what rank {rank} said:\n{self.texts[rank]}"


def free_port():
    """A port that nobody has, for a moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def environment(**more):
    """That of this process without what belongs to it, with these sources."""
    dropped = ("JAXGATE_", "PYTEST_", "CI", "GITHUB_", "XLA_FLAGS")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    path = os.pathsep.join([SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])
    own = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": path, "JAXGATE_PROFILE": "never", "COLUMNS": "250"}
    return {**kept, **own, **more}


COMMAND = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *NO_OTHERS, "--benchmark-quiet"]


@pytest.fixture
def job(tmp_path):
    """A project that can be run serially and over several processes."""
    (tmp_path / "pyproject.toml").write_text('[tool.pytest]\nperf_cpu_devices = "2"\n')

    class Project:
        path = tmp_path

        def write(self, *parts):
            (tmp_path / FILE).write_text("".join((HEAD, *parts)))

        def serial(self, *options, **more):
            done = subprocess.run(
                [*COMMAND, *options],
                cwd=tmp_path,
                env=environment(**more),
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            return Job([done.stdout + done.stderr], [done.returncode])

        def run(self, count, *options, of_rank=MappingProxyType({}), **more):
            where = f"127.0.0.1:{free_port()},{count}"
            processes = [
                subprocess.Popen(
                    [*COMMAND, f"--perf-distributed={where},{rank}", *options],
                    cwd=tmp_path,
                    env=environment(RANK=str(rank), **more, **of_rank.get(rank, {})),
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
                for rank in range(count)
            ]
            try:
                texts = [process.communicate(timeout=LIMIT_S)[0] for process in processes]
            finally:
                for process in processes:
                    process.kill()
            return Job(texts, [process.returncode for process in processes])

        def results(self):
            content = json.loads((tmp_path / "perf-artifacts/results.json").read_text())
            return content, {case["case"]: case for case in content["cases"]}

    return Project()


def verdicts(cases):
    """What must be the same however many processes there are: all but times and their reasons."""
    return {
        name: (case["status"], case["hardware"], case["fails"], case["time"]["status"], case["findings"])
        for name, case in cases.items()
    }


def facts_of(path):
    """The facts in each baseline below a folder."""
    return {file.stem: json.loads(file.read_text())["facts"] for file in sorted(path.rglob("*.json"))}


@nightly
def test_local_cases_are_judged_as_in_one_process_and_spread_ones_are_judged_at_all(job):
    """Facts and verdicts of local cases equal those of a serial run; a second run of spread ones is SAME by identity."""
    job.write(LOCAL)
    recording = job.serial("--perf-update")
    assert recording.codes == [0], recording.texts
    recorded = facts_of(job.path / "baselines")
    judging = job.serial("--perf-strict")
    assert judging.codes == [0], judging.texts
    _, alone = job.results()
    job.write(LOCAL, SPREAD)
    together = job.run(2, "--perf-update")
    assert together.codes == [0, 0], together.texts
    assert {name: facts for name, facts in facts_of(job.path / "baselines").items() if name in recorded} == recorded
    spread = [folder.name for folder in (job.path / "baselines").iterdir() if "-2-processes-4-jax-" in folder.name]
    assert len(spread) == 1, "two processes of two devices have a folder of their own"
    log = "".join(file.read_text() for file in sorted((job.path / "baselines/log").glob("*.md")))
    assert log.count("created") == 2, f"rank 0 alone records:\n{log}"
    again = job.run(2, "--perf-strict")
    assert again.codes == [0, 0], again.texts
    content, cases = job.results()
    assert content["green"]
    assert verdicts({name: cases[name] for name in alone}) == verdicts(alone)
    assert {name: case["status"] for name, case in cases.items()} == {
        "job/local": "SAME",
        "job/state": "SAME",
        "job/psum": "SAME",
        "job/by_parts": "SAME",
        "job/loop": "SAME",
    }
    again.shows(0, "over 2 processes: rank 0 (", "identical program")
    again.shows(1, "judged by rank 0", "SAME  job/psum")
    store = HistoryStore(find_place(HISTORY_PLACE, job.path))
    assert len(runs_of(store)) == 4, "of each job rank 0 alone remembers the run"
    assert [point.recorded for point in store.points("job/psum")] == ["created", ""]


FAULTS = """
def test_planted(gate):
    _, x = spread("x")
    gate(jax.jit(lambda x: x.sum()), x, max_collectives=0)

def test_nan(gate):
    gate(lambda x: x * 2, jnp.full(3, jnp.nan if RANK else 1.0))

def test_other_program(gate):
    gate(lambda x: x * 2 if RANK else x + 1, jnp.ones(3))

def test_branch(gate):
    _, x = spread("x")
    gate(jax.jit(lambda x: x.sum() if RANK else x.max()), x)

def test_other_order(gate):
    mesh, x = spread("x")
    def both(x):
        sums = {name: getattr(jax.lax, name)(x, "x") for name in sorted(("psum", "pmax"), reverse=bool(RANK))}
        return sums["psum"] + sums["pmax"]
    gate(jax.jit(jax.shard_map(both, mesh=mesh, in_specs=P("x"), out_specs=P())), x)

def test_lazy(gate):
    _, x = spread("x")
    total, more = jax.jit(lambda x: x.sum()), jax.jit(lambda x: x.max())
    def step(x):
        found = total(x)
        return found + more(x) if RANK else found
    gate(step, x, eager=True)

def test_other_step(gate):
    _, x = spread("x")
    def other(output, args):
        return (output.astype(jnp.float16),) if RANK else (output,)
    gate(jax.jit(lambda x: x - x.mean()), x, next_args=other)

def test_other_shards(gate):
    mesh, x = spread("x")
    def other(output, args):
        layout = NamedSharding(mesh, P(None, "x") if RANK else P("x"))
        return (jax.make_array_from_callback(X.shape, layout, lambda index: X[index]),)
    gate(jax.jit(lambda x: x - x.mean()), x, next_args=other)

def test_retraces_there(gate):
    gate(jax.jit(lambda x: x * 2), jnp.float32(3), next_args=lambda output, args: (1.5,) if RANK else args)

def test_cut(gate):
    _, x = spread("x")
    gate(jax.jit(lambda x: x[:15] * 2), x, batch=Batch(argument=0, size=16))

def test_spread_in_two_ways(gate):
    mesh, x = spread("x")
    other = NamedSharding(mesh, P(None, "x"))
    gate(jax.jit(lambda x: x * 2), x, reference=jax.jit(lambda x: x * 2, out_shardings=other))

def test_wrong_there(gate):
    _, x = spread("x")
    gate(jax.jit(lambda x: x * 2), x, reference=jax.jit(lambda x: (x * 2).at[13, 3].add(1)))

def test_time(gate):
    from jaxgate import claim
    _, x = spread("x")
    held = claim("run_ns <= 5 * reference", "they are the same")
    gate(jax.jit(lambda x: x * 2), x, reference=jax.jit(lambda x: x + x), claims=[held])

def test_foreign(gate):
    mesh = Mesh(np.array(jax.devices()[:2]), ("x",))
    gate(jax.jit(lambda x: x * 2), jax.device_put(np.ones(4, np.float32), NamedSharding(mesh, P("x"))))

def test_plain():
    assert not RANK
"""


@nightly
def test_what_one_rank_sees_is_red_on_all_of_them(job):
    """A broken claim, a NaN on one rank, another program there, a retrace there: red everywhere, with the rank's name."""
    job.write(FAULTS, LOCAL)
    done = job.run(2)
    assert done.codes == [1, 1], done.texts
    _, cases = job.results()
    found = {name: (case["status"], case["findings"][0]["detail"]) for name, case in cases.items()}
    expected = {
        "planted": ("REGRESSED", ""),
        "nan": ("INVALID", r"found 3 NaN of 3 in result \(on rank 1 \(.*, pid \d+\)\)"),
        "other_program": (
            "INVALID",
            r"stablehlo\.(add|constant).* on rank 0 \(.*stablehlo\.(multiply|constant).* on rank 1 \(",
        ),
        "branch": (
            "INVALID",
            r"expected the program to be the same .*stablehlo.* on rank 0 .*stablehlo.* on rank 1 \(",
        ),
        "other_order": ("INVALID", r"stablehlo\.maximum.* on rank 0 \(.*stablehlo\.add.* on rank 1 \("),
        "lazy": (
            "INVALID",
            r"expected program \d that it launches over several ranks to be the same on all ranks, found no further program "
            r"on rank 0 \(.*\) and \{ lambda",
        ),
        "other_step": (
            "INVALID",
            r"the arguments of step 2 to be the same .*float32.* on rank 0 \(.*float16.* on rank 1",
        ),
        "other_shards": ("INVALID", r"the arguments of step 2 to be the same .*rank 0 \(.*None.* on rank 1 \("),
        "retraces_there": ("REGRESSED", r"on rank 1 \("),
        "cut": ("INVALID", "sample 15 of 16 does not influence the result"),
        "spread_in_two_ways": ("INVALID", "spread over the processes in different ways"),
        "wrong_there": ("INVALID", r"result\[13, 3\]: .*; 1 of .* \(on rank 1 \("),
        "time": ("NO_BASELINE", ""),
        "foreign": ("INVALID", r"none of process 1, only of 0; .*jax.local_devices\(\)"),
        "local": ("NO_BASELINE", ""),
        "state": ("NO_BASELINE", ""),
    }
    assert {name.removeprefix("job/"): status for name, (status, _) in found.items()} == {
        name: status for name, (status, _) in expected.items()
    }
    for name, (_, pattern) in expected.items():
        assert re.search(pattern, found[f"job/{name}"][1]), f"{name}: {found[f'job/{name}'][1]}"
    done.shows(0, "several processes: timed beside the baseline's program alone", "rank 1 (", "step 2 retraced")
    done.shows(1, "judged by rank 0: REGRESSED  job/planted", "judged by rank 0: INVALID  job/nan", "assert not 1")
    assert re.search(r"jaxgate: rank 1 \(.*\): 14 failed", done.texts[0]), "a test that failed only there is told here"


UNEVEN = """
def test_step(gate):
    mesh, x = spread("x")
    def own(x):
        turns = 20_000 + int(os.environ["MORE"]) * jax.lax.axis_index("x")
        return jax.lax.psum(jax.lax.fori_loop(0, turns, lambda _, y: jnp.tanh(y) * FACTOR, x), "x")
    gate(jax.jit(jax.shard_map(own, mesh=mesh, in_specs=P("x"), out_specs=P())), x)
"""


@nightly
def test_a_rank_that_works_longer_is_named(job):
    """Four times as long: the duel says so, fresh processes confirm it, and the profiles stand side by side."""
    job.write("FACTOR = 1.1\n", UNEVEN)
    one = {"JAXGATE_CPU_DEVICES": "1"}
    recorded = job.run(2, "--perf-update", MORE="1", **one)
    assert recorded.codes == [0, 0], recorded.texts
    done = job.run(2, "--perf-strict", MORE="60000", JAXGATE_PROFILE="failing", **one)
    assert done.codes == [1, 1], done.texts
    _, cases = job.results()
    assert cases["job/step"]["status"] == "SLOWER"
    found = re.search(r"culprit +rank 1 \(.*\), which works [\d.]+ × as long for a call", done.texts[0])
    assert found, done.texts[0]
    done.shows(0, "in fresh processes")
    done.shows(1, "judged by rank 0: SLOWER  job/step")
    folder = job.path / "perf-artifacts/job/step"
    assert {side.name for side in folder.iterdir() if side.is_dir()} == {
        "now-p0",
        "now-p1",
        "baseline-p0",
        "baseline-p1",
    }
    assert re.search(r"(?s)## Ranks side by side.*\| rank 0 \(.*\| rank 1 \(", (folder / "report.md").read_text())


@nightly
def test_ranks_with_other_baselines_do_not_duel(job):
    """Rank 0 alone records, so that another machine may have an older one: they would wait for each other in two programs."""
    job.write("FACTOR = float(os.environ['FACTOR'])\n", UNEVEN)
    one = {"JAXGATE_CPU_DEVICES": "1", "MORE": "1"}
    assert job.run(2, "--perf-update", FACTOR="1.1", **one).codes == [0, 0]
    shutil.copytree(job.path / "baselines", job.path / "older")
    again = job.run(2, "--perf-update", FACTOR="1.2", **one)
    assert again.codes == [0, 0], again.texts
    done = job.run(2, FACTOR="1.3", of_rank={1: {"JAXGATE_BASELINES": "older"}}, **one)
    assert done.codes == [1, 1], done.texts
    _, cases = job.results()
    assert cases["job/step"]["status"] == "INVALID"
    assert "expected the baseline's program to be the same on all ranks" in cases["job/step"]["findings"][0]["detail"]


@nightly
def test_tracing_that_takes_longer_is_confirmed_over_ranks(job):
    """The test is run again over as many fresh processes: what fires there, too, is red on all ranks."""
    head = "FACTOR = 1.1\nSLEEPS = float(os.environ.get('SLEEPS', 0))\n"
    job.write(head, UNEVEN.replace("    def own(x):", "    def own(x):\n        time.sleep(SLEEPS)"))
    one = {"JAXGATE_CPU_DEVICES": "1", "MORE": "1"}
    assert job.run(2, "--perf-update", **one).codes == [0, 0]
    done = job.run(2, SLEEPS="3", **one)
    assert done.codes == [1, 1], done.texts
    _, cases = job.results()
    found = cases["job/step"]["findings"][0]
    assert (cases["job/step"]["status"], found["kind"]) == ("REGRESSED", "phase")
    assert "confirmed in 2 fresh processes" in found["detail"]


@nightly
def test_a_program_that_works_as_long_is_not_red(job):
    """Another constant in the program: whatever the clocks of a busy machine say, nothing waits and nothing is red."""
    job.write("FACTOR = float(os.environ['FACTOR'])\n", UNEVEN)
    same = {"JAXGATE_CPU_DEVICES": "1", "MORE": "1"}
    assert job.run(2, "--perf-update", FACTOR="1.1", **same).codes == [0, 0]
    done = job.run(2, FACTOR="1.10001", **same)
    assert done.codes == [0, 0], done.texts
    _, cases = job.results()
    assert cases["job/step"]["time"]["status"] in {"SAME", "UNDECIDED"}
    assert "several processes" not in cases["job/step"]["time"]["reason"]


@pytest.mark.parametrize(
    ("fault", "said", "codes"),
    [
        ("dies", r"rank 1 \(.*, pid \d+\) died while `job/stuck` ran", (1, -9)),
        (
            "hangs",
            r"rank 1 \(.*, pid \d+\) hangs?: no progress for 300 s while `job/stuck` ran .*test_job.py:\d+ in stop",
            (1, 1),
        ),
    ],
    ids=["dies", "hangs"],
)
def test_a_rank_that_is_lost_ends_the_run_with_its_name(job, fault, said, codes):
    """Rank 0 waits for it in a collective, from which no exception comes: it reports all the same, and ends."""
    job.write(ENDS)
    (job.path / "conftest.py").write_text(NO_PROGRESS)
    done = job.run(2, FAULT=fault)
    assert tuple(done.codes) == codes, done.texts
    assert re.search(said, done.texts[0]), done.texts[0]
    content, cases = job.results()
    assert not content["green"]
    assert content["exit_status"] == 1
    assert {name: case["status"] for name, case in cases.items()} == {
        "job/before": "NO_BASELINE",
        "job/stuck": "INVALID",
    }
    assert re.search(said, cases["job/stuck"]["findings"][0]["detail"])
    assert content["not_judged"] == [f"{FILE}::test_after"]
    done.shows(0, "FAILED test_job.py::test_stuck", "jaxgate: 1 of 3 gates was not judged")
    if fault == "hangs":
        assert re.search(said, done.texts[1]), "every rank says why it ended"


@nightly
def test_ranks_with_other_tests_do_not_begin(job):
    """The first test that differs is named; nothing is run, and nothing is green."""
    job.write("if RANK:\n    def test_only_there(gate): gate(lambda x: x, jnp.ones(3))\n", LOCAL)
    done = job.run(2)
    assert done.codes == [1, 1], done.texts
    for rank in (0, 1):
        done.shows(
            rank, "expected the same tests on all ranks, found 2 on rank 0", "and 3 on rank 1", "test_only_there"
        )
    assert "passed" not in done.texts[0]


def test_ranks_that_lose_each_other_do_not_go_on(job):
    """A gate that one rank does not reach: both names, the rest not judged."""
    job.write("def test_left_out(gate):\n    if RANK: pytest.skip('')\n    gate(lambda x: x + 3, jnp.ones(3))\n", LOCAL)
    done = job.run(2)
    assert done.codes == [1, 1], done.texts
    done.shows(0, "the ranks are not at the same place: rank 0 (", "is at the gate of `job/left_out`, rank 1 (")
    done.shows(0, "at the gate of `job/local`", "2 of 3 gates were not judged")


@nightly
def test_what_rank_0_judged_is_written_though_it_dies(job):
    """After each case: JAX aborts the others at once, and nobody could write more."""
    job.write("""
def test_before(gate):
    gate(lambda x: x + 1, jnp.ones(3))

def test_late(gate):
    if RANK == 0: os.kill(os.getpid(), signal.SIGKILL)
    gate(lambda x: x, jnp.ones(3))
""")
    done = job.run(2)
    assert done.codes[0] == -9, done.texts
    assert done.codes[1] != 0, done.texts
    results, cases = job.results()
    assert {name: case["status"] for name, case in cases.items()} == {"job/before": "NO_BASELINE"}
    assert [test.rpartition("::")[2] for test in results["not_judged"]] == ["test_late"]


@nightly
def test_several_gates_in_one_test(job):
    """Each meets on all ranks; one that is red on one rank lets the others be judged, and both ranks fail the test once."""
    job.write(
        """
def test_both(gate):
    gate(lambda x: jnp.where(RANK, jnp.nan, 1.0) * x, jnp.ones(3), name="first")
    gate(lambda x: x + 1, jnp.ones(3), name="second")

def test_alone(gate):
    gate(lambda x: x + 2, jnp.ones(3))
"""
    )
    done = job.run(2)
    assert done.codes == [1, 1], done.texts
    _, cases = job.results()
    assert {name: case["status"] for name, case in cases.items()} == {
        "job/first": "INVALID",
        "job/second": "NO_BASELINE",
        "job/alone": "NO_BASELINE",
    }
    for rank in (0, 1):
        done.shows(rank, "1 failed, 1 passed")


@nightly
def test_four_processes(job):
    """Four of them go through the same cases, and one of them that dies takes all with it."""
    job.write(
        "def test_late(gate):\n    if RANK == 2: os.kill(os.getpid(), signal.SIGKILL)\n    gate(lambda x: x, jnp.ones(3))\n"
    )
    text = (job.path / FILE).read_text()
    (job.path / FILE).write_text(text.replace("def test_late", SPREAD + "\ndef test_late"))
    done = job.run(4)
    assert done.codes == [1, 1, -9, 1], done.texts
    _, cases = job.results()
    assert cases["job/psum"]["hardware"].endswith("-4-processes-8")
    assert cases["job/late"]["status"] == "INVALID"
    for rank in (0, 1, 3):
        assert re.search(r"rank 2 \(.*, pid \d+\) died while", done.texts[rank]), done.texts[rank]


@nightly
def test_a_rank_whose_others_never_come_ends_by_itself(job):
    """JAX would wait, and then abort without a word."""
    job.write(LOCAL)
    where = f"--perf-distributed=127.0.0.1:{free_port()},2,0,3"
    done = job.serial(where)
    assert done.codes == [1], done.texts
    done.shows(0, "the other processes have not come within 3 s (its last number); this is rank 0 of 2")
