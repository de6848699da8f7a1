"""Under CI each baseline has its verdict: a gate that the project leaves out of a whole run is told by name, and red."""

import pytest
from support.corpora import nightly, one_of
from support.projects import NO_OTHERS, TWO

RED = "test_model.py::test_first"
LINE = "jaxgate: 1 of 2 gates was not judged: test_model.py::test_first"
MARKED = ("def test_first", "import pytest\n@pytest.mark.{}\ndef test_first")
CONFTEST = (
    "def pytest_collection_modifyitems(items):\n    items[:] = [one for one in items if 'first' not in one.name]\n"
)
IN_A_FILE = "collect_ignore = ['test_model.py']\n"


@pytest.fixture
def two(project, monkeypatch):
    """Two gates with baselines, under CI; time is not what this is about."""
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("JAXGATE_BUDGET", "0")
    return project.write("test_model.py", TWO).record()


def mark(project, how):
    """Mark the first of the two tests."""
    project.edit("test_model.py", MARKED[0], MARKED[1].format(how))


def add(project, *options):
    """Let the project's own settings have options."""
    project.write("pyproject.toml", f'[tool.pytest]\npythonpath = ["."]\naddopts = {[*NO_OTHERS, *options]}\n')


WAYS = {
    "skip": lambda project: mark(project, "skip"),
    "skipif": lambda project: mark(project, "skipif(True, reason='slow')"),
    "xfail that does not run": lambda project: mark(project, "xfail(run=False)"),
    "deselected by addopts": lambda project: add(project, f"--deselect={RED}"),
    "-k in addopts": lambda project: add(project, "-k", "second"),
    "a conftest takes it out": lambda project: project.write("conftest.py", CONFTEST),
    "it skips itself": lambda project: project.edit(
        "test_model.py", "    gate(first", "    import pytest\n    pytest.skip()\n    gate(first"
    ),
}


@pytest.mark.parametrize("how", WAYS)
def test_a_gate_that_the_project_leaves_out_is_red(two, how):
    """The exit code is that of `jaxgate gate`, page and results agree with it; without CI nothing changes."""
    WAYS[how](two)
    result = two.run()
    assert result.code == 2
    assert result.line("not judged").startswith(LINE)
    found = two.results()
    assert (found["green"], found["exit_status"], found["gate_exit"], found["not_judged"]) == (False, 2, 2, [RED])
    assert f"❌ **1 not judged**: `{RED}`" in (two.path / "perf-artifacts/summary.md").read_text()
    if how == "skip":
        assert two.run("--no-perf-strict").code == 0


def settings(project, *lines):
    """Give the project these lines of settings."""
    text = "\n".join(["[tool.pytest]", 'pythonpath = ["."]', f"addopts = {[*NO_OTHERS]}", *lines])
    project.write("pyproject.toml", f"{text}\n")


def hooked(name, *lines):
    """A conftest with a hook of pytest's that comes first."""
    body = "".join(f"    {line}\n" for line in lines)
    text = f"import pytest\n\n@pytest.hookimpl(tryfirst=True)\ndef {name}:\n{body}"
    return lambda project: project.write("conftest.py", text)


def before(text):
    """Something that the first test does before it gates."""
    return lambda project: project.edit("test_model.py", "    gate(first", f"    {text}\n    gate(first")


RELATIVES = {
    "another prefix of functions": lambda project: settings(project, 'python_functions = ["test_s*"]'),
    "renamed": lambda project: project.edit("test_model.py", "def test_first", "def check_first"),
    "no test any more": lambda project: project.write("test_model.py", f"{TWO}\ntest_first.__test__ = False\n"),
    "returns early": before("return"),
    "returns early under CI": before("if __import__('os').environ.get('CI'): return"),
    "needs what is not there": before("__import__('pytest').importorskip('not_there')"),
    "no parameters": lambda project: project.edit(
        "test_model.py",
        "def test_first(gate",
        "import pytest\n@pytest.mark.parametrize('n', [])\ndef test_first(n, gate",
    ),
    "a fixture skips it": lambda project: project.write(
        "conftest.py",
        "import pytest\n\n@pytest.fixture(autouse=True)\ndef later(request):\n"
        "    if 'first' in request.node.name:\n        pytest.skip('later')\n",
    ),
    "a hook calls nothing": hooked("pytest_pyfunc_call(pyfuncitem)", "return 'first' in pyfuncitem.name or None"),
    "a hook runs nothing": hooked("pytest_runtest_protocol(item)", "return 'first' in item.name or None"),
    "a hook ends the run": hooked(
        "pytest_runtest_setup(item)", "if 'second' in item.name: item.session.shouldstop = 'enough'"
    ),
}
"""Further ways: a test that is gone, or passes without its gate."""


@pytest.mark.parametrize("how", RELATIVES)
def test_however_a_gate_is_lost_the_run_is_red(two, how):
    """The page agrees, whether a baseline has lost its test or a test its gate."""
    RELATIVES[how](two)
    result = two.run("--benchmark-disable")
    assert result.code in (1, 2), result.text
    found = two.results()
    assert not found["green"]
    assert found["gate_exit"] in (1, 2)


HIDDEN = {
    "another prefix of files": lambda project: settings(project, 'python_files = ["plain_*.py"]'),
    "other folders": lambda project: settings(project, 'testpaths = ["plain"]'),
    "addopts = --ignore": lambda project: add(project, "--ignore=test_model.py"),
}


@pytest.mark.parametrize("how", one_of(list(HIDDEN), 3))
def test_a_gate_run_that_finds_no_gate_is_red(two, how):
    """Plain pytest may be that of the other tests, as where gates have a folder of their own; ``jaxgate gate`` is not."""
    two.write("plain/plain_a.py", "def test_plain():\n    pass\n").write(
        "plain/test_b.py", "def test_plain():\n    pass\n"
    )
    HIDDEN[how](two)
    done = two.alone("-m", "jaxgate.cli.main", "gate", CI="true")
    assert done.returncode == 2, done.stdout
    assert "pytest ended with exit code 0 and judged nothing" in done.stdout


def test_a_file_that_is_not_collected_is_told(two):
    two.write("test_other.py", TWO.replace("first", "third").replace("second", "fourth")).run(
        "test_other.py", "--perf-update"
    )
    two.write("conftest.py", IN_A_FILE)
    result = two.run()
    assert result.code == 2
    result.shows(
        "jaxgate: 2 of 4 gates were not judged: test_model.py::test_first, test_model.py::test_second; that is not green"
    )


@pytest.mark.parametrize("arguments", [pytest.param(["-n1"], marks=nightly), ["--benchmark-disable"]], ids=" ".join)
def test_it_is_red_however_the_run_is_spread(two, arguments):
    """Workers send which tests there are; the clock has nothing to do with it."""
    assert two.run(*arguments).code == 0
    two.write("conftest.py", CONFTEST)
    result = two.run(*arguments)
    assert result.code == 2
    result.shows(LINE)


def test_a_test_that_ends_before_its_second_gate_is_told(two):
    """Its first case was judged; the baseline of the other one was not."""
    named = "import jax.numpy as jnp, pytest\n\ndef test_it(gate):\n    gate(jnp.sin, jnp.ones(4), name='a')\n"
    more = "    gate(jnp.cos, jnp.ones(4), name='b')\n"
    two.write("test_named.py", named + more).run("test_named.py", "--perf-update")
    two.write("test_named.py", f"{named}    pytest.skip('later')\n{more}")
    result = two.run()
    assert result.code == 2
    result.shows("1 of 3 gates was not judged: test_named.py::test_it;")


ALL = {
    "addopts = --benchmark-skip": lambda project: add(project, "--benchmark-skip"),
    "-m in addopts": lambda project: add(project, "-m", "not perf"),
    "a conftest": lambda project: project.write(
        "conftest.py", CONFTEST.replace("'first' not in one.name", "'plain' in one.name")
    ),
}


@pytest.mark.parametrize(
    ("how", "arguments"), [*((how, ()) for how in ALL), pytest.param("a conftest", ("-n1",), marks=nightly)]
)
def test_a_project_that_leaves_out_all_gates_is_red(two, how, arguments):
    """No gate opens a session; other tests that pass do not make that green."""
    two.write("test_plain.py", "def test_plain():\n    pass\n")
    ALL[how](two)
    result = two.run(*arguments)
    assert result.code == 1
    result.shows("jaxgate: 2 of 2 gates were not judged", "; no gate was judged, and that is not green here")
    assert two.run("--no-perf-strict", *arguments).code == 0


NARROWED = [
    ["-k", "second"],
    ["-m", "not perf or perf", "-k", "second"],
    [f"--deselect={RED}"],
    ["test_model.py::test_second"],
    ["--ignore=test_model.py"],
    ["--benchmark-skip"],
    ["-m", "not perf"],
    ["folder"],
    pytest.param(["-n1", "test_model.py::test_second"], marks=nightly),
    ["--collect-only"],
]


@pytest.mark.parametrize("arguments", NARROWED, ids=" ".join)
def test_what_is_left_out_on_the_command_line_is_not_missed(two, arguments):
    """Whoever typed it knows: a run of some gates, or of a folder, is green by these."""
    two.write("folder/test_third.py", TWO.replace("first", "third").replace("second", "fourth")).record("folder")
    result = two.run(*arguments)
    assert result.code in (0, 5), result.text  # 5: no test is left
    assert "that is not green" not in result.text


def test_a_variable_of_the_run_counts_as_typed(two, monkeypatch):
    """It stands in the workflow, not in the project."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k second")
    assert two.run().code == 0


def test_the_last_failed_alone_are_no_whole_run(two):
    """--lf runs what was red; the others were judged before."""
    two.write("test_plain.py", "import os\n\ndef test_plain():\n    assert 'MENDED' in os.environ\n")
    assert two.with_memory().ret == 1
    two.instruments = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MENDED", "1")
        assert two.with_memory("--lf").ret == 0


@pytest.mark.parametrize("arguments", [(), pytest.param(("-n1",), marks=nightly)], ids=["one process", "workers"])
def test_baselines_that_serve_elsewhere_are_not_missed(two, arguments):
    """A gate for another platform, or for more devices, that is left out here has nothing to be held against."""
    two.edit_baseline("model/first", hardware={"platform": "gpu"})
    two._move("model/first", two.baseline("model/first").parents[1].name.replace("cpu", "gpu", 1))
    two.write("conftest.py", CONFTEST)
    assert two.run(*arguments).code == 0
    two.write("test_plain.py", "def test_plain():\n    pass\n")
    two.edit_baseline("model/second", hardware={"devices": 8})
    two._move("model/second", two.baseline("model/second").parents[1].name.replace("-1-jax", "-8-jax"))
    two.write("conftest.py", ALL_OUT)
    assert two.run(*arguments).code == 0


ALL_OUT = CONFTEST.replace("'first' not in one.name", "'plain' in one.name")


def test_borrowed_baselines_are_missed(two):
    """Where this hardware has none of its own, those of its platform serve, and each is asked for."""
    two.lend("model/first")
    two.lend("model/second")
    assert two.run().code == 0
    two.write("conftest.py", CONFTEST)
    result = two.run()
    assert result.code == 2
    result.shows(LINE)


def test_a_recording_leaves_out_what_it_likes(two):
    mark(two, "skip")
    assert two.run("--perf-update").code == 0
