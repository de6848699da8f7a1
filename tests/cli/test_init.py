"""``jaxgate init``: what it writes works as it is, and nothing of anybody is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.corpora import nightly
from support.git import commit
from support.paths import REPOSITORY

from jaxgate.cli.init import ATTRIBUTES, FILES, NEXT, WORKFLOW, init
from jaxgate.cli.main import main

WORKFLOWS = REPOSITORY / ".github/workflows"


def printed(capsys):
    """The first word of each line with its file."""
    lines = capsys.readouterr().out.partition("Next:")[0].splitlines()
    return {line[10:]: line[:10].strip() for line in lines}


def test_an_empty_folder_gets_everything(tmp_path, capsys):
    assert init(tmp_path) == 0
    out = capsys.readouterr().out
    assert out.count("wrote") == len(FILES)
    assert [line.strip() for line in out.splitlines()[-len(NEXT) :]] == list(NEXT)
    assert {name: (tmp_path / name).read_text() for name in FILES} == dict(FILES)


def test_a_second_time_changes_nothing(tmp_path, capsys):
    init(tmp_path)
    capsys.readouterr()
    init(tmp_path, ask=lambda question: pytest.fail(question))
    assert set(printed(capsys).values()) == {"is there"}


@pytest.mark.parametrize(
    ("answer", "word"), [("y", "replaced"), (" YES ", "replaced"), ("n", "kept"), ("", "kept"), (None, "kept")]
)
def test_a_file_is_replaced_only_if_somebody_says_so(tmp_path, capsys, answer, word):
    file = tmp_path / "perf/test_first.py"
    file.parent.mkdir()
    file.write_text("# mine\n")
    init(tmp_path, ask=None if answer is None else lambda question: answer)
    assert printed(capsys)["perf/test_first.py"] == word
    assert (file.read_text() == "# mine\n") == (word == "kept")


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, EOFError])
def test_an_interrupted_question_is_no(tmp_path, interrupt):
    (tmp_path / "perf").mkdir()
    (tmp_path / "perf/test_first.py").write_text("# mine\n")

    def ask(question):
        raise interrupt

    assert init(tmp_path, ask=ask) == 0
    assert (tmp_path / "perf/test_first.py").read_text() == "# mine\n"


def test_lines_are_added_to_what_git_is_told_already(tmp_path, capsys):
    (tmp_path / ".gitattributes").write_text("*.png binary")
    init(tmp_path)
    assert printed(capsys)[".gitattributes"] == "added to"
    assert (tmp_path / ".gitattributes").read_text() == f"*.png binary\n\n{ATTRIBUTES}"


def test_a_folder_in_the_way_is_one_line(tmp_path, capsys):
    (tmp_path / "perf/test_first.py").mkdir(parents=True)
    assert init(tmp_path) == 1
    assert capsys.readouterr().err.startswith("jaxgate init: expected files that can be read and written, found")


def test_arguments_are_refused(capsys):
    assert main(["init", "somewhere"]) == 2


def test_the_actions_of_the_workflow_are_those_of_our_own():
    """The same commits: one place is kept up to date, and this test tells of the other."""
    pinned = set(re.findall(r"uses: (\S+@\w{40} # \S+)", WORKFLOW))
    ours = {
        found for file in WORKFLOWS.glob("*.yml") for found in re.findall(r"uses: (\S+@\w{40} # \S+)", file.read_text())
    }
    assert pinned
    assert pinned <= ours


def test_the_test_is_the_first_recipe():
    """To the letter, below its docstring: one of the two cannot grow old alone."""
    page = (REPOSITORY / "docs/recipes.md").read_text(encoding="utf-8")
    recipe = re.search(r"^## Plain JAX\n\n```python\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)[1]
    assert FILES["perf/test_first.py"].partition('"""\n\n')[2] == recipe


@nightly
def test_what_it_prints_leads_to_a_green_line(tmp_path, monkeypatch):
    """The commands as they stand there, each in a shell."""
    init(tmp_path)
    commit(tmp_path, "empty")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "CI"))}
    variables |= {"PATH": f"{Path(sys.executable).parent}:{variables['PATH']}", "JAXGATE_MACHINE_HELD": "tests"}
    variables |= {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    for command in NEXT:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout
    assert re.search(r"^SAME  first/train_step .* identical program$", done.stdout, flags=re.MULTILINE)
