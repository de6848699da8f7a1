"""``jaxgate history``: what is remembered, in the terminal and for machines; and runs out of files."""

import json

import pytest
from support.histories import COMMIT, FOLDER, case, run, runs_of

from jaxgate.cli.main import main
from jaxgate.ext.history.model import HISTORY_PLACE
from jaxgate.ext.history.store import HistoryStore, find_place
from jaxgate.model.outcome import TimeRecord

OTHER = "cpu-intel-xeon-1"


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose history has four runs of one case, three of another, on one machine, and one on another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAXGATE_HISTORY", raising=False)
    (tmp_path / "pyproject.toml").write_text("")
    store = HistoryStore(find_place(HISTORY_PLACE, tmp_path))
    slower = TimeRecord(status="SLOWER", ratio=1.3, low=1.28, high=1.33)
    store.append(run(1, case(recorded="created", time=TimeRecord(status="SAME")), case("scan/lstm")))
    store.append(run(2, case(run_ns=2_000), case("scan/lstm")))
    store.append(run(3, case(run_ns=3_000, temp_bytes=8_000, status="REGRESSED", time=slower), case("scan/lstm")))
    store.append(run(4, case(run_ns=3_000, temp_bytes=8_000, recorded="refreshed"), case(hardware=OTHER)))
    return tmp_path


def said(capsys, *arguments, code=0):
    """What the command prints, on stdout where it does what was asked and else on stderr."""
    assert main(["history", *arguments]) == code
    out = capsys.readouterr()
    assert (out.err if code == 0 else out.out) == ""
    return out.out if code == 0 else out.err


def test_cases_are_listed(project, capsys):
    """With how often, how it went the last time, and when."""
    lines = said(capsys).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["scan/lstm", FOLDER, "3", "SAME", "2026-11-25", "00:03"],
        ["scan/rnn", FOLDER, "4", "SAME", "2026-11-25", "00:04"],
        ["scan/rnn", f"{OTHER}-jax-0.10", "1", "SAME", "2026-11-25", "00:04"],
    ]
    assert lines[0].split() == ["case", "hardware", "and", "jax", "runs", "last", "status", "last", "run"]


def test_a_case_is_shown_with_curves_and_runs(project, capsys):
    """Time as a ratio and by the clock; the fact that moved, and no other; a row for each run says what moved then."""
    shown = said(capsys, "rnn", "--folder", FOLDER)
    lines = [line.split("  ") for line in shown.splitlines()]
    table = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert table == [
        [f"scan/rnn on {FOLDER}: 4 runs, 2026-11-25 00:01 to 2026-11-25 00:04"],
        ["against the baseline", "▁█▁", "1.01 × to 1.30 ×", "last 1.01 ×"],
        ["run_ns", "▁▄██", "1.23 µs to 3 µs", "last 3 µs"],
        ["temp_bytes", "▁▁██", "4 kB to 8 kB", "last 8 kB"],
        [],
        ["time: 1 % [-1.3, 3.3] since 2026-11-20, against the first baseline"],
        ["temp_bytes 4 kB → 8 kB = 2.00 × in 1 step since 2026-11-25"],
        ["temp_bytes 4 kB → 8 kB = 2.00 × on 2026-11-25 (commit 5aa7a3f, or not committed then), in 2 runs since"],
        [],
        ["run", "commit", "status", "against the baseline", "run_ns", "moved most since the run before", "baseline"],
        ["2026-11-25 00:01", COMMIT[:10], "SAME", "1.23 µs", "created"],
        ["2026-11-25 00:02", COMMIT[:10], "SAME", "1.01 × [0.99, 1.03]", "2 µs"],
        ["2026-11-25 00:03", COMMIT[:10], "REGRESSED", "1.30 × [1.28, 1.33]", "3 µs", "temp_bytes 4 kB → 8 kB"],
        ["2026-11-25 00:04", COMMIT[:10], "SAME", "1.01 × [0.99, 1.03]", "3 µs", "refreshed"],
    ]
    assert "traces" not in shown
    heads = [line for line in said(capsys, "scan/rnn").splitlines() if line.startswith("scan/rnn on ")]
    assert heads[1:] == [f"scan/rnn on {OTHER}-jax-0.10: 1 run, 2026-11-25 00:04"]


def test_a_long_history_has_a_short_table(project, capsys):
    """Its curve has it all, and the last line says how to see the rest; the newest runs alone are shown where it is asked for."""
    store = HistoryStore(find_place(HISTORY_PLACE, project))
    for number in range(5, 105):
        store.append(run(number, case("scan/long", run_ns=number)))
    lines = said(capsys, "long").splitlines()
    curve = next(line.split()[1] for line in lines if line.startswith("run_ns"))
    assert len(curve) == 60
    assert (curve[0], curve[-1]) == ("▁", "█")
    assert sum(line.startswith("2026-11-25 ") for line in lines) == 20
    assert lines[-1] == "80 earlier runs; all of them: --last 100"
    assert sum(line.startswith("2026-11-25 ") for line in said(capsys, "long", "--last", "100").splitlines()) == 100
    shown = said(capsys, "lstm", "--last", "2")
    assert "2 runs, 2026-11-25 00:02 to 2026-11-25 00:03" in shown
    assert "00:01" not in shown


def test_json_has_everything(project, capsys):
    points = json.loads(said(capsys, "lstm", "--json"))
    assert points["schema"] == 1
    assert [point["run"] for point in points["points"]] == ["run-0001", "run-0002", "run-0003"]
    assert points["points"][0]["figures"]["temp_bytes"] == 4_000
    assert points["points"][0]["baseline"]["folder"] == FOLDER
    cases = json.loads(said(capsys, "--json"))["cases"]
    assert [(one["case"], one["runs"]) for one in cases] == [("scan/lstm", 3), ("scan/rnn", 4), ("scan/rnn", 1)]


def test_a_name_must_be_of_one_case(project, capsys):
    """Else those are listed that it may mean; the whole name goes before a part of another one."""
    lines = said(capsys, "scan", code=1).splitlines()
    assert lines == [
        "jaxgate history: expected one case with 'scan' in its name, found 2:",
        "  scan/lstm",
        "  scan/rnn",
    ]
    assert "found none; list them: jaxgate history" in said(capsys, "vmap", code=1)
    store = HistoryStore(find_place(HISTORY_PLACE, project))
    store.append(run(9, case("scan/rnn-long")))
    assert said(capsys, "scan/rnn", "--folder", FOLDER).startswith("scan/rnn on")


def test_nothing_is_there(tmp_path, monkeypatch, capsys):
    """The line says where, and how something gets there; nothing is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JAXGATE_HISTORY", raising=False)
    line = said(capsys, code=1)
    assert f"{tmp_path}/.jaxgate/history.sqlite: expected runs, found none; each run of pytest that judges adds" in line
    assert list(tmp_path.iterdir()) == []


def test_the_place_is_found_as_pytest_finds_it(project, monkeypatch, capsys):
    """Option, variable, ini key; a path of the option is relative to where one stands."""
    (project / ".jaxgate/history.sqlite").rename(project / "runs.sqlite")
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    assert "scan/rnn" in said(capsys, "--history", "../runs.sqlite")
    (project / "pyproject.toml").write_text('[tool.pytest]\nperf_history = "runs.sqlite"\n')
    assert "scan/rnn" in said(capsys)
    monkeypatch.setenv("JAXGATE_HISTORY", "none")
    assert "the place is `none`" in said(capsys, code=1)


def test_names_do_nothing_in_a_terminal(project, capsys):
    store = HistoryStore(find_place(HISTORY_PLACE, project))
    store.append(run(9, case("scan/\x1b[2Jevil", status="\x1b[31m"), commit="\x1b[1m"))
    for arguments in ((), ("evil",), ("evil", "--json"), ("evi", "--folder", FOLDER)):
        assert "\x1b" not in said(capsys, *arguments)


def test_a_number_of_runs_is_one(project, capsys):
    for text in ("0", "-1", "many", "²"):
        with pytest.raises(SystemExit):
            main(["history", "rnn", "--last", text])
        assert f"expected a number of runs, 1 or more, found '{text}'" in capsys.readouterr().err
    assert said(capsys, "--page-me", code=2) == "jaxgate history: unknown arguments --page-me\n"


# --- files

BENCHMARK = {
    "machine_info": {
        "node": "box",
        "processor": "x86_64",
        "machine": "x86_64",
        "python_version": "3.11.7",
        "system": "Linux",
        "cpu": {"brand_raw": "AMD EPYC 7763 64-Core Processor", "count": 2},
    },
    "commit_info": {"id": COMMIT, "dirty": False, "branch": "main"},
    "benchmarks": [
        {"fullname": "tests/test_model.py::test_step[small size]", "stats": {"median": 2.5e-06}, "extra_info": {}},
        {
            "fullname": "perf/test_scan.py::test_scan[rnn]",
            "stats": {"median": 0.001},
            "extra_info": {"case": "scan/rnn", "hardware": "cpu-amd-epyc-1"},
        },
    ],
    "datetime": "2026-03-01T12:00:00.123456",
    "version": "5.2.1",
}


def saved(folder, name="0001_x.json", **changes):
    """A file that pytest-benchmark saved."""
    file = folder / name
    file.write_text(json.dumps(BENCHMARK | changes))
    return str(file)


def test_runs_of_pytest_benchmark_are_added_once(project, capsys):
    """Whatever the file is called; times are known, and nothing else is made up: a commit that is none is unknown."""
    shown = f"{project}/.jaxgate/history.sqlite"
    files = saved(project), saved(project, "copy.json")
    assert said(capsys, "--import", *files) == f"{shown}: 1 run added, 1 known already\n"
    assert said(capsys, "--import", files[0]) == f"{shown}: 0 runs added, 1 known already\n"
    store = HistoryStore(find_place(HISTORY_PLACE, project))
    ours, (step,) = store.points("scan/rnn"), store.points("model/step-small-size-b0d62f")
    (about,) = (one for one in runs_of(store) if one.source == "pytest-benchmark")
    assert (step.folder, step.figures) == ("amd-epyc-7763-64-core-processor", {"run_ns": 2_500})
    assert (step.status, step.time_status, step.program, step.recorded, step.baseline) == ("", "", "", "", None)
    assert (step.ratio, step.fails, step.source) == (None, False, "pytest-benchmark")
    assert (step.commit, step.moment) == (COMMIT, "2026-03-01T12:00:00+00:00")
    assert step.environment["processor"] == "AMD EPYC 7763 64-Core Processor"
    assert (about.green, about.gate_exit, about.jaxgate) == (None, None, "")
    assert (ours[0].folder, ours[0].figures) == ("cpu-amd-epyc-1", {"run_ns": 1_000_000})  # oldest first
    assert "from pytest-benchmark" in said(capsys, "small-size")
    said(capsys, "--import", saved(project, commit_info={"id": "unversioned"}))
    assert {one.commit for one in runs_of(store) if one.source == "pytest-benchmark"} == {COMMIT, None}


def test_results_of_a_run_are_added(project, capsys):
    """From an artifact of CI; one that is there already is known by its name."""
    content = {"schema": 1, "jaxgate": "0.1.0", "run": "abc", "moment": "2026-11-26T00:00:00+00:00", "green": True}
    content |= {"gate_exit": 0, "environments": [], "commit": None}
    one = {"case": "vmap/loss", "status": "SAME", "fails": False, "time": {"status": "SAME"}, "hardware": None}
    file = project / "results.json"
    file.write_text(json.dumps(content | {"cases": [one]}))
    assert "1 run added" in said(capsys, "--import", str(file))
    assert "0 runs added, 1 known already" in said(capsys, "--import", str(file))
    assert "vmap/loss" in said(capsys)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"benchmarks": None}, "found no list under `benchmarks`"),
        ({"datetime": None}, "found no `datetime`"),
        ({"datetime": "yesterday"}, "expected date and time such as"),
        ({"benchmarks": [{"fullname": "x"}]}, "no `stats.median` in benchmark 0"),
        ({"benchmarks": ["x"]}, "no `stats.median` in benchmark 0"),
        ({"cases": 3}, "expected the results.json of a run"),
    ],
)
def test_a_file_that_is_something_else_keeps_no_other_out(project, capsys, changes, says):
    wrong, right = saved(project, "wrong.json", **changes), saved(project)
    assert main(["history", "--import", wrong, right, str(project / "none.json")]) == 1
    out = capsys.readouterr()
    assert out.out.endswith(": 1 run added, 0 known already, 2 files were not read\n")
    first, second = out.err.splitlines()
    assert first.startswith(f"jaxgate history: {wrong}: expected")
    assert says in first
    assert "none.json" in second


def test_what_moved_in_all_cases_and_since_when(project, capsys):
    """Cases in which nothing moved are counted, and no case is no error."""
    lines = said(capsys, "--changes").splitlines()
    assert lines[0] == f"scan/rnn on {FOLDER}"
    assert any("temp_bytes 4 kB → 8 kB = 2.00 × in 1 step since 2026-11-25" in line for line in lines)
    assert lines[-1] == "3 histories: 1 moved"
    assert said(capsys, "lstm", "--changes") == "1 history: 0 moved\n"
    assert said(capsys, "rnn", "--changes", "--last", "1").endswith("2 histories: 0 moved\n")


def test_a_page_is_written_over_a_page_of_ours_only(project, capsys):
    """Nothing else is lost by a typing mistake; a page needs a case."""
    (project / "notes.html").write_text("mine")
    assert "notes.html cannot be written: expected a page of jaxgate's" in said(
        capsys, "rnn", "--folder", FOLDER, "--page", "notes.html", code=2
    )
    assert (project / "notes.html").read_text() == "mine"
    for _ in range(2):
        assert said(capsys, "rnn", "--folder", FOLDER, "--page", "rnn.html") == "rnn.html\n"
    assert "temp_bytes 4 kB → 8 kB = 2.00 × in 1 step since 2026-11-25" in (project / "rnn.html").read_text()
    assert "expected CASE before --page" in said(capsys, "--page", "all.html", code=2)
