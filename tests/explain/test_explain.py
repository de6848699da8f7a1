"""What a run said of a case, for people and for programs, and what to type next."""

import json
import re
import shlex

import pytest
from support.corpora import nightly
from support.git import commit
from support.histories import case
from support.paths import REPOSITORY
from support.projects import model

from jaxgate.cli.main import main
from jaxgate.ext.explain.text import experiments
from jaxgate.model.decision import Status
from jaxgate.model.outcome import FindingRecord

TEST = "test_model.py::test_rnn[a b]"


@pytest.mark.parametrize("status", Status)
def test_what_is_not_calm_has_a_next_command(status):
    """Whatever the verdict; what is calm needs none. The test's name is one word."""
    calm = status in {Status.SAME, Status.FASTER, Status.IMPROVED, Status.EXPECTED, Status.WAIVED}
    found = list(experiments(case(status=str(status), test=TEST)))
    assert bool(found) is not calm
    assert all(shows for _, shows in found)
    assert {word for command, _ in found for word in shlex.split(command) if "::" in word} == (
        set() if calm else {TEST}
    )


def test_a_red_case_is_taken_apart_before_it_is_accepted():
    """The programs first, then the commit; profiles where there are some."""
    about = {"status": "REGRESSED", "origin": "code", "profiled": ("now",), "test": TEST}
    commands = [command.split(" ")[:2] for command, _ in experiments(case("a/b", **about))]
    assert commands == [
        ["jaxgate", "repro"],
        ["jaxgate", "bisect"],
        ["jaxgate", "tensorboard"],
        ["pytest", f"'{TEST[:-3]}"],
    ]
    first, *_ = experiments(case("a/b", **about | {"origin": "environment", "profiled": ()}))
    assert first[0] == "jaxgate upgrade --help"


@pytest.mark.parametrize(("kind", "accepted"), [("fact", True), ("claim", False), ("case", False)])
def test_what_no_baseline_can_make_right_is_not_accepted(kind, accepted):
    """As a claim, and all that is said of a loop."""
    wrong = FindingRecord(kind=kind, name="kept_bytes", status="REGRESSED")
    found = experiments(case(status="REGRESSED", test=TEST, findings=(wrong,)))
    assert any("--perf-update" in command for command, _ in found) is accepted


REFUSED = [
    (["nothing"], "expected one case that ends with 'nothing', found 0; there is: "),
    (["er", "--results", "perf-artifacts/results.json", "--more"], "unknown arguments --more"),
    (["--results", "nowhere"], "expected the results.json of a run"),
    (["t"], "found 0"),
]
"""What is one line on stderr: with what there is."""


@pytest.fixture
def red(project, monkeypatch):
    """A run with a red case and a green one, in a repository."""
    project.write("test_model.py", model("jnp.ones(64)", step="jnp.tanh(x)", other="jnp.tanh(x)")).record()
    commit(project.path)
    project.edit("test_model.py", "def step(x):\n    return jnp.tanh(x)", "def step(x):\n    return jnp.tanh(x), x * 2")
    assert project.run("--perf-profile=never").code == 1
    monkeypatch.chdir(project.path)
    return project


def test_a_case_is_told_by_the_end_of_its_name(red, capsys):
    """Its text, its line and the next commands; all cases without a name, what fails first; one line for what is not there."""
    assert main(["explain"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("REGRESSED      model/step  more is returned: result[0]")
    assert second == "SAME           model/other"
    assert main(["explain", "test_step"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"^REGRESSED  model/step .*^  culprit .*^  look at   test_model.py:\d+$", said, re.MULTILINE | re.DOTALL
    )
    assert "  try       jaxgate repro model/step\n" in said
    assert main(["explain", "model/step", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["status"], told["fails"]) == (1, "REGRESSED", True)
    assert told["next"][0]["command"] == "jaxgate repro model/step"
    assert told["findings"][0]["name"] == "output_bytes"
    assert main(["explain", "--json"]) == 0
    assert [one["case"] for one in json.loads(capsys.readouterr().out)["cases"]] == ["model/step", "model/other"]
    for arguments, error in REFUSED:
        assert main(["explain", *arguments]) == 2
        said = capsys.readouterr()
        assert (error in said.err, said.out) == (True, "")


@nightly
def test_the_commands_of_the_guide_run(project):
    """docs/assistants.md: each in turn, in a project with one gate; all that is for machines is JSON."""
    page = (REPOSITORY / "docs/assistants.md").read_text(encoding="utf-8")
    commands = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[0].splitlines()
    project.write("test_train.py", model("jnp.ones(64)", train_step="jnp.tanh(x)"))
    for line in commands:
        words = shlex.split(line)
        variables = dict(word.split("=") for word in words if word.isupper() or word == "CI=true")
        words = [word for word in words if word.split("=")[0] not in variables]
        program = ["-m", "jaxgate.cli.main" if words[0] == "jaxgate" else words[0], *words[1:]]
        done = project.alone(*program, **variables, JAXGATE_HISTORY=".jaxgate/history.sqlite")
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        if "--json" in words:
            json.loads(done.stdout)
        if "--perf-update" in words:
            commit(project.path)
