"""A baseline for each release line of jax: its own first, else the nearest; a recording leaves the others alone."""

import pytest
from support.lines import line_here

from jaxgate.cli import main as cli

TEST = """
import jax.numpy as jnp

def test_step(gate):
    gate(lambda x: jnp.tanh(x), jnp.ones((4, 4)))
"""


@pytest.fixture
def dated(project, lab):
    """One case, whose only baseline another release line recorded."""
    del lab
    project.write("test_model.py", TEST).record()
    project.date_back()
    return project


def folders(project):
    """The release lines that have baselines."""
    return sorted(name.partition("/")[0].rpartition("-jax-")[2] for name in project.baselines())


def test_the_nearest_line_is_compared_with(dated):
    """It judges, and the run says once that this line has none of its own, with the command."""
    result = dated.run()
    assert result.code == 0
    result.shows(
        f"1 case is compared with baselines of jax 0.9: jax {line_here()} has none of its own; record them beside those: "
        "--perf-update=create",
        "jax 0.9.1 → ",
    )


def test_a_loss_against_another_line_is_red(dated):
    """A borrowed baseline gates: what is worse than it is no green."""
    dated.edit_baseline(facts={"collectives": 0, "matmul_flops": 0})
    dated.edit("test_model.py", "jnp.tanh(x)", "jnp.tanh(x @ x @ x)")
    result = dated.run()
    assert result.code == 1
    result.shows("REGRESSED  model/step", "borrowed from ", "-jax-0.9")


@pytest.mark.parametrize("mode", ["--perf-update", "--perf-update=create"])
def test_a_recording_leaves_other_lines_alone(dated, mode):
    """What another line recorded stays, byte for byte; the log names hardware and line."""
    before = dated.baselines()
    assert dated.run(mode, "--perf-why", "first of this line").code == 0
    after = dated.baselines()
    assert {name: after[name] for name in before} == before
    assert folders(dated) == sorted(["0.9", line_here()])
    assert (
        sum(f"-jax-{line_here()}`: created `model/step`. Why: first of this line" in text for text in dated.log()) == 1
    )
    result = dated.run("--perf-strict")
    assert result.code == 0
    assert "compared with baselines of jax" not in result.text


def test_a_refresh_records_no_line_that_has_none(dated):
    """It replaces what is there, and here nothing is."""
    result = dated.run("--perf-update=refresh")
    assert folders(dated) == ["0.9"]
    result.shows("SAME")


def test_an_orphan_of_another_line_is_that_lines(dated):
    """A run looks for orphans among what its own jax recorded; trim looks everywhere."""
    assert dated.run("--perf-update").code == 0
    dated.edit("test_model.py", "test_step", "test_other")
    result = dated.run()
    result.shows("RENAMED? model/other", f"-jax-{line_here()}/model/other.json", "-jax-0.9/model/other.json")
    assert result.text.count("git mv") == 2
    dated.baseline_of(line_here()).unlink()
    assert "ORPHAN" not in dated.run().text


def test_a_program_that_another_line_names_stays(dated):
    """A refresh removes the program that it replaces only where no line needs it."""
    assert dated.run("--perf-update").code == 0
    assert len(list(dated.path.glob("baselines/programs/*"))) == 1
    dated.edit("test_model.py", "jnp.tanh(x)", "jnp.tanh(x) + 1")
    assert dated.run("--perf-update=refresh").code == 0
    assert len(list(dated.path.glob("baselines/programs/*"))) == 2


def test_a_folder_without_a_line_counts_for_nothing(dated, monkeypatch, capsys):
    """No run reads what lies in it, so no gate is green by it; the list of baselines says where its files belong."""
    (old,) = (dated.path / "baselines").glob("*-jax-0.9")
    old.rename(old.with_name(old.name.removesuffix("-jax-0.9")))
    result = dated.run("--perf-strict")
    assert result.code != 0
    result.shows("NO_BASELINE  model/step")
    monkeypatch.chdir(dated.path)
    assert cli.main(["baselines"]) == 1
    assert f"expected it in the folder `{old.name}`" in capsys.readouterr().out
