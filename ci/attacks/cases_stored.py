"""Attacks 10, 13, 14 and 20, and those of 21 that concern what is recorded, and whether a failure counts."""

from __future__ import annotations

from collections.abc import Callable

from attack import FACTS, Attack, CannotRunError, Seen, seen_of, told
from gated_sources import DOUBLE, WIDE, WIDTH
from scratch_project import SCAFFOLD, Project, Workshop

WORSE = ("return x * 2", "return jnp.concatenate([x, x]) * 2")
LARGE = DOUBLE.replace("jnp.ones(64)", "jnp.ones((64, 64))")
DEARER = LARGE.replace("return x * 2", "return jnp.sin(jnp.tanh(x @ x))")
LOOKS = """
import jax, jax.numpy as jnp

@jax.tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def tree_flatten(self):
        return (self.a, self.b), (len(self.a.shape), len(self.b.shape))

    @classmethod
    def tree_unflatten(cls, _, leaves):
        new = object.__new__(cls)
        new.a, new.b = leaves
        return new

@jax.jit
def step(pair):
    return pair.a * pair.b

def test_step(gate):
    gate(step, Pair(jnp.ones(8), jnp.ones(8)))
"""
TWO = DOUBLE + "\ndef test_slow(gate):\n    gate(lambda x: x + 1, jnp.ones(64))\n"
DESELECTS = """
import pytest

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    left = [item for item in items if "slow" in item.nodeid]
    items[:] = [item for item in items if item not in left]
    REPORT
"""
REPORTS = "config.hook.pytest_deselected(items=left)"


def _ignored(name: str, rule: str, place: str) -> Callable[[Workshop], Seen]:
    """A rule of git leaves out some baselines, which are told until they are committed."""

    def run(workshop: Workshop) -> Seen:
        project = workshop.project({f"test_{name}.py": DOUBLE})
        project.commit()
        if place == "excludes":
            file = project.path.parent / f"{project.path.name}.gitconfig"
            (project.path.parent / "excludes").write_text(f"{rule}\n")
            file.write_text(f"[core]\n\texcludesFile = {project.path.parent / 'excludes'}\n")
            project.environ["GIT_CONFIG_GLOBAL"] = str(file)
        else:
            with (project.path / place).open("a") as lines:
                lines.write(f"{rule}\n")
        project.record()
        found = project.gate(FACTS)
        missing = len(project.ignored())
        green, told_of = found.results["green"], found.results["needs_commit"]
        what = f"{missing} files are in no commit; exit {found.code}, green {green}, needs_commit {told_of}"
        if not missing or found.statuses != "SAME":
            raise CannotRunError(what)
        return told(not green and len(told_of) >= missing, what)

    return run


def _record_command(workshop: Workshop) -> Seen:
    """``jaxgate record`` makes a patch that holds all baselines, whatever git ignores."""
    project = workshop.project({"test_env.py": DOUBLE, ".gitignore": SCAFFOLD[".gitignore"] + "env/\n*.gz\n"})
    project.commit()
    ran = project.jaxgate("record", "--why", "new", "--busy-ok", "test_env.py", limit_s=240)
    patch = project.path / "perf-artifacts" / "baselines.patch"
    if not patch.exists():
        raise CannotRunError(f"no patch, exit {ran.code}: {ran.last}")
    clone = workshop.clone(project)
    clone.git("apply", "--index", str(patch))
    clone.commit()
    run = clone.gate(FACTS)
    programs = len(list(clone.path.glob("baselines/programs/*.gz")))
    return told(
        run.statuses == "SAME" and run.code == 0 and programs,
        f"record ended with exit {ran.code}; with its patch a clone is {run.statuses}, exit {run.code}, {programs} programs",
    )


def _namesakes(workshop: Workshop) -> Project:
    """Two files of one name in two folders; b's test is recorded, and a's is cheaper."""
    project = workshop.project({"a/test_model.py": LARGE, "b/test_model.py": DEARER})
    project.record("b")
    project.control("b", FACTS)
    return project


def _judged_by_another(workshop: Workshop) -> Seen:
    run = _namesakes(workshop).gate("a", FACTS)
    return told(run.status in {"INVALID", "NO_BASELINE"} and run.code == 1, f"{run.status}, exit {run.code}")


def _recorded_over_another(workshop: Workshop) -> Seen:
    project = _namesakes(workshop)
    before = project.baseline("model/step").read_bytes()
    ran = project.pytest("a", "--perf-update")
    kept = project.baseline("model/step").read_bytes() == before
    project.commit()
    again = project.gate("b", FACTS)
    what = (
        f"recording a: exit {ran.code}; b's baseline {'stays' if kept else 'is overwritten'}, and b is {again.statuses}"
    )
    return told(kept and again.code == 0, what)


NO_VERDICT = 2
"""How a run ends in which something that has a baseline gets no verdict."""


def _deselected(report: str) -> Callable[[Workshop], Seen]:
    """A test that the project takes out before any plugin looks is not gone."""

    def run(workshop: Workshop) -> Seen:
        project = workshop.recorded({"test_model.py": TWO}, then=(FACTS,))
        project.write("conftest.py", DESELECTS.replace("REPORT", report))
        before = sorted(project.path.glob("baselines/**/*.*"))
        gated = project.gate(FACTS)
        trimmed = project.pytest("--perf-update=trim")
        lost = len(set(before) - set(project.path.glob("baselines/**/*.*")))
        orphan = ", ORPHAN" if "ORPHAN" in gated.text else ""
        what = f"gate: exit {gated.code}{orphan}; trim: exit {trimmed.code}, {lost} files removed"
        return told(gated.code == NO_VERDICT and not orphan and not lost, what)

    return run


def _own_options(*typed: str, **environ: str) -> Callable[[Workshop], Seen]:
    """The other side runs with the options of the project that this one was given."""

    def run(workshop: Workshop) -> Seen:
        project = workshop.project({"conftest.py": WIDTH, "test_case.py": WIDE})
        project.commit()
        options = (*typed, "--perf-against=HEAD", FACTS, "--perf-max-undecided=1")
        unchanged = project.pytest(*options, **environ)
        if "INTERNALERROR" in unchanged.text:
            raise CannotRunError(unchanged.last)
        project.edit("test_case.py", "jnp.tanh(x @ x)", "jnp.sin(jnp.tanh(x @ x @ x))")
        return seen_of(project.pytest(*options, **environ), ("REGRESSED",))

    return run


def _uncounted(old: str, new: str) -> Callable[[Workshop], Seen]:
    """The case is red, and pytest counts no failure: the run is red all the same."""

    def run(workshop: Workshop) -> Seen:
        text = DOUBLE.replace(old, new)
        project = workshop.recorded({"test_case.py": text}, then=(FACTS,))
        project.edit("test_case.py", *WORSE)
        return seen_of(project.gate(FACTS), ("REGRESSED",))

    return run


def _edited_facts(workshop: Workshop) -> Seen:
    """A baseline that its own program contradicts: slack for the next change."""
    project = workshop.recorded({"test_case.py": DOUBLE}, then=(FACTS,))
    project.edit_baseline("case/step", "facts", temp_bytes=999_999_999)
    project.commit()
    return seen_of(project.gate(FACTS), ("INVALID",))


def _looks_at_leaves(workshop: Workshop) -> Seen:
    """A pytree whose flattening looks at its leaves, which JAX gives in other kinds than arrays, is measured."""
    project = workshop.project({"test_case.py": LOOKS})
    project.commit()
    ran = project.pytest("--perf-update")
    return told(
        ran.code == 0,
        f"exit {ran.code}: {next((line for line in ran.text.splitlines() if 'AttributeError' in line), ran.last)}",
    )


def _recorded_loss(workshop: Workshop) -> Seen:
    """Recording what is worse stays possible; the log has the figure."""
    project = workshop.recorded({"test_case.py": DOUBLE}, then=(FACTS,))
    project.edit("test_case.py", *WORSE)
    ran = project.pytest("--perf-update")
    log = "".join(path.read_text() for path in project.path.glob("baselines/log/*.md"))
    if ran.code:
        raise CannotRunError(f"recording ended with exit {ran.code}: {ran.last}")
    return told("output_bytes" in log, f"the log {'has' if 'output_bytes' in log else 'lacks'} the figure of the loss")


ATTACKS = (
    Attack("21n", "a pytree that looks at its leaves", _looks_at_leaves),
    Attack("10a", "baselines that git ignores: env/", _ignored("env", "env/", ".gitignore")),
    Attack("10b", "programs that git ignores: *.gz", _ignored("model", "*.gz", ".gitignore")),
    Attack("10c", "entries of the log that git ignores: log/", _ignored("model", "log/", ".gitignore")),
    Attack("10d", "baselines that the clone's own rules ignore", _ignored("build", "build/", ".git/info/exclude")),
    Attack("10e", "baselines that the user's own rules ignore", _ignored("build", "build/", "excludes")),
    Attack("10f", "a patch of what git ignores", _record_command),
    Attack("13a", "two files of one name, run apart: judged", _judged_by_another),
    Attack("13b", "two files of one name, run apart: recorded", _recorded_over_another),
    Attack("14a", "a test that is deselected first", _deselected(REPORTS)),
    Attack("14b", "a test that is deselected first, and not reported", _deselected("")),
    Attack("20a", "options of the project, against HEAD", _own_options("--width", "256")),
    Attack("20b", "options of the project in a variable, against HEAD", _own_options(PYTEST_ADDOPTS="--width=256")),
    Attack(
        "21a",
        "a regression that is expected to fail",
        _uncounted("\ndef test_step", "\n@pytest.mark.xfail\ndef test_step"),
    ),
    Attack(
        "21b",
        "a regression that the test swallows",
        _uncounted(
            "    gate(step, jnp.ones(64))",
            "    try:\n        gate(step, jnp.ones(64))\n    except BaseException:\n        pass",
        ),
    ),
    Attack("21c", "facts of a baseline that are edited", _edited_facts),
    Attack("21d", "a loss that is recorded without a reason", _recorded_loss),
)
