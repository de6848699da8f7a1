"""``jaxgate baselines``: what is stored, for people and for machines, and what is wrong with it."""

import datetime as dt
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from support.factories import FINGERPRINTS, OTHER_CPU, PROGRAM, PROVENANCE, baseline
from support.git import commit

from jaxgate.cli import baselines as module
from jaxgate.cli import main as cli
from jaxgate.keep.baselines import save_baseline
from jaxgate.keep.log import append_log
from jaxgate.keep.programs import ProgramStore

FOLDER = "cpu-amd-epyc-1-jax-0.10"


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Three baselines: two of a family on one hardware, of which one is hash-only, one on another. It is 1 December."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAXGATE_BASELINES", raising=False)
    monkeypatch.setattr(module, "utc_today", lambda: dt.date(2026, 12, 1))
    root = tmp_path / "baselines"
    digest = ProgramStore(root).save(FINGERPRINTS.program, b"program")
    stored = replace(PROGRAM, digest=digest)
    for case, day, changes in (
        ("scan/rnn", "2026-11-20", {"program": stored}),
        ("scan/lstm", "2026-11-29", {"program": replace(PROGRAM, digest=None, why_not="private")}),
        ("vmap/loss", "2026-06-01", {"program": stored, "hardware": OTHER_CPU}),
    ):
        found = baseline(case=case, **changes)
        save_baseline(root, replace(found, provenance=replace(PROVENANCE, date=day)))
    append_log(root, created=["scan/rnn"], refreshed=[], folder=FOLDER, why="first of all")
    return root


def run(capsys, *arguments):
    """Exit code and lines."""
    code = cli.main(["baselines", *arguments])
    return code, capsys.readouterr().out.splitlines()


def test_families_by_hardware(root, capsys):
    """Number, dates with ages, when jax's promise ends (180 days), and what they were recorded with."""
    code, lines = run(capsys)
    assert code == 0
    assert " ".join(lines[0].split()) == "hardware jax family cases oldest newest readable until recorded with"
    assert lines[1] == (
        "cpu-amd-epyc-1    0.10  scan    2      2026-11-20 (11 d)   2026-11-29 (2 d)    2027-05-19      jax 0.10.2, python 3.11"
    )
    assert lines[2].startswith(
        "cpu-intel-xeon-1  0.10  vmap    1      2026-06-01 (183 d)  2026-06-01 (183 d)  2026-11-28"
    )
    assert lines[4:] == [
        "store    1 program, 27 B",
        "         each is named by a baseline",
        "promise  jax reads the oldest program until 2026-11-28; it is 183 days old (vmap/loss)",
    ]


def test_cases_with_commit_owner_and_reason(root, capsys):
    """The reason from the log, who committed the file from git; neither is made up."""
    commit(Path())
    code, lines = run(capsys, "--cases")
    assert code == 0
    assert lines[1].split("  ")[-1] == "A"  # no reason is known
    assert "scan/lstm" in lines[1]
    assert " - " in lines[1]  # no program, no promise
    assert lines[2].endswith("0123456789  A   first of all")


def test_json_has_everything(root, capsys):
    """The whole environment, ages, and the store by file."""
    ProgramStore(root).save("f00d", b"left")
    code, lines = run(capsys, "--json")
    found = json.loads("\n".join(lines))
    assert (code, found["schema"], found["sound"]) == (0, 1, True)
    rnn = next(case for case in found["cases"] if case["case"] == "scan/rnn")
    assert rnn["environment"] == {"jax": "0.10.2", "jaxlib": "0.10.2", "python": "3.11"}
    assert (rnn["age_days"], rnn["readable_until"], rnn["why"]) == (11, "2027-05-19", "first of all")
    assert found["unreferenced"]["paths"] == ["programs/f00d.export.gz"]
    assert (found["programs"]["count"], found["unreferenced"]["bytes"]) == (2, 24)


def test_programs_that_nobody_names_are_counted(root, capsys):
    """With their bytes and the command that removes them; they are no fault."""
    ProgramStore(root).save("f00d", b"left")
    code, lines = run(capsys)
    assert code == 0
    assert "         1 that no baseline names, 24 B; remove: pytest perf --perf-update=trim" in lines


def test_a_program_that_is_missing_is_no_success(root, capsys):
    """As after a merge that removed on one side what the other one came to name."""
    next((root / "programs").iterdir()).unlink()
    code, lines = run(capsys)
    assert code == 1
    assert [line for line in lines if line.startswith("MISSING")] == [
        f"MISSING  program of {FOLDER}/scan/rnn; restore it with git, or record the case again",
        "MISSING  program of cpu-intel-xeon-1-jax-0.10/vmap/loss; restore it with git, or record the case again",
    ]


WAIVER = (
    '[[waiver]]\ncase = "scan/{name}"\nquantity = "temp_bytes"\nup_to = 4200\nowner = "team"\nreason = "issue 12"\n'
    "expires = {expires}\n"
)


def test_waivers_in_force_are_told(root, capsys):
    """With their last day; one that is over is not in force, and a file that cannot be read is no success."""
    text = WAIVER.format(name="rnn", expires="2026-12-01") + WAIVER.format(name="lstm", expires="2026-11-30")
    (root / "waivers.toml").write_text(text)
    code, lines = run(capsys)
    assert code == 0
    assert [line for line in lines if line.startswith("waiver")] == [
        "waiver   scan/rnn: temp_bytes up to 4200 until 2026-12-01 (team: issue 12)"
    ]
    (root / "waivers.toml").write_text("[[waiver]]\n")
    code, lines = run(capsys)
    assert code == 1
    assert lines[-1].startswith("UNREADABLE  waivers.toml: entry 1: key `case` is missing")


def test_a_narrow_terminal_wraps_nothing(root, capsys, monkeypatch):
    """Lines are cut to its width; in a file or a pipe they are whole."""
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, run(capsys)[1])) > 40
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    lines = run(capsys)[1]
    assert max(map(len, lines)) == 40
    assert lines[1].endswith("…")


def test_no_folder_and_no_baseline_are_no_success(root, capsys):
    assert cli.main(["baselines", "--baselines", "basslines"]) == 1
    assert "expected a folder basslines, found none" in capsys.readouterr().err
    (root.parent / "empty").mkdir()
    code, lines = run(capsys, "--baselines", "empty")
    assert (code, lines[-1]) == (1, "EMPTY    no baseline; record: pytest perf --perf-update")
    assert cli.main(["baselines", "more"]) == 2


@pytest.mark.parametrize(
    ("text", "variable", "folder"),
    [
        ('[tool.pytest]\nperf_baselines = "kept"\n', "", "kept"),
        ('[tool.pytest.ini_options]\nperf_baselines = "kept"\n', "", "kept"),
        ('[tool.pytest]\nperf_baselines = "kept"\n', "other", "other"),
        ("", "", "baselines"),
        ("tool = 3", "", "baselines"),
        ("[tool]\npytest = 3", "", "baselines"),
        ("[tool.pytest]\nini_options = 3", "", "baselines"),
    ],
)
def test_the_folder_is_that_of_pytest(tmp_path, monkeypatch, text, variable, folder):
    """The variable before the ini key before the default, also of a file of another shape; from a folder below the project, too."""
    monkeypatch.setenv("JAXGATE_BASELINES", variable)
    (tmp_path / "pyproject.toml").write_text(text)
    (tmp_path / "deep").mkdir()
    assert module.usual_folder(tmp_path / "deep") == tmp_path / folder


def test_an_ini_file_that_cannot_be_read_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[tool")
    assert cli.main(["baselines"]) == 1
    assert "pyproject.toml cannot be read: " in capsys.readouterr().err


def test_no_jax_is_imported(root):
    code = (
        "import sys; from jaxgate.cli import main; assert main.main(['baselines']) == 0; "
        "sys.exit(any(name in sys.modules for name in ('jax', 'pytest', 'numpy')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + done.stdout


def test_names_of_files_only_show(root, capsys):
    """A file, a commit, a reason: none of them clears the screen, and bytes that are no text are no traceback."""
    shown = "model\x1b[2J\x1b[31mALL GREEN"
    for name in (b"case\x1b[2J.json", b"\xff.json"):
        (root / FOLDER / "scan" / os.fsdecode(name)).write_text("{")
    save_baseline(root, replace(baseline(), provenance=replace(PROVENANCE, commit=shown)))
    append_log(root, created=[], refreshed=["scan/rnn"], folder=FOLDER, why="\x1b]0;title\x07 because")
    for arguments in ((), ("--cases",), ("--json",)):
        cli.main(["baselines", *arguments])
        text = capsys.readouterr().out
        assert "\x1b" not in text
        assert "\x07" not in text
        text.encode()


def test_a_history_with_names_that_are_no_text(root, capsys):
    (root / FOLDER / "scan" / os.fsdecode(b"\xff.json")).write_text("{")
    commit(root.parent, "one")
    code, lines = run(capsys, "--cases")
    assert code == 1
    assert any("UNREADABLE" in line and "\\udcff.json" in line for line in lines)
