"""Options: command line before environment before ini before default, and a clear word where they make no sense."""

from types import SimpleNamespace

import pytest
from support.paths import REPOSITORY
from support.projects import NO_OTHERS

from jaxgate import settings as variables
from jaxgate.plugin.options import table
from jaxgate.plugin.options.kinds import read_kind
from jaxgate.plugin.options.page import options_page
from jaxgate.plugin.stash import SETTINGS
from jaxgate.settings import RunKind, Update

ROOT = REPOSITORY


@pytest.fixture
def settings(project, monkeypatch):
    """Reads the settings of a run with these arguments, variables and ini keys."""

    def read(*arguments, ini="", **environment):
        for name, value in environment.items():
            if value is not None:
                monkeypatch.setenv(name, value)
        project.write("pyproject.toml", f"[tool.pytest]\n{ini}\n")
        return project.pytester.parseconfigure(*NO_OTHERS, *arguments).stash[SETTINGS]

    return read


STRICT = {
    "command line over all that say no": ("--perf-strict", "0", "false", "false", True),
    "command line over all that say yes": ("--no-perf-strict", "1", "true", "true", False),
    "a bad value that is overridden": ("--no-perf-strict", "maybe", None, None, False),
    "environment over ini and CI that say yes": (None, "0", "true", "true", False),
    "environment over ini and CI that say no": (None, "1", "false", None, True),
    "an empty variable is none": (None, "", "true", None, True),
    "a blank variable does not switch CI off": (None, " ", None, "true", True),
    "ini over CI that says yes": (None, None, "false", "true", False),
    "ini over CI that says no": (None, None, "true", "false", True),
    "an empty ini key is none": (None, None, "", "true", True),
    "nothing said": (None, None, None, None, False),
}
for word in ("true", "TRUE", "1", "yes", "woodpecker", " true "):  # whatever a CI calls itself
    STRICT[f"CI={word!r}"] = (None, None, None, word, True)
for word in ("", "false", "False", "0", "no", "off", " "):  # a laptop's
    STRICT[f"CI={word!r}"] = (None, None, None, word, False)
for word in ("1", "true", "Yes", "on", "0", "False", "no", "off"):  # in any case of letters
    STRICT[f"variable {word!r}"] = (None, word, None, None, word.lower() in ("1", "true", "yes", "on"))
    STRICT[f"ini {word!r}"] = (None, None, word, None, word.lower() in ("1", "true", "yes", "on"))


@pytest.mark.parametrize("situation", STRICT)
def test_who_decides_on_strictness(settings, situation):
    argument, variable, ini, ci, expected = STRICT[situation]
    found = settings(
        *([argument] if argument else []),
        ini="" if ini is None else f'perf_strict = "{ini}"',
        JAXGATE_STRICT=variable,
        CI=ci,
    )
    assert found.strict is expected


FOLDERS = {
    "command line over all": (["--perf-baselines", "typed"], "variable", "ini", "typed"),
    "environment over ini": ([], "variable", "ini", "variable"),
    "an empty variable is none": ([], "", "ini", "ini"),
    "ini": ([], None, "deep/ini", "deep/ini"),
    "an empty ini key is none": ([], None, "", "baselines"),
    "nothing said": ([], None, None, "baselines"),
}


@pytest.mark.parametrize("situation", FOLDERS)
def test_where_the_baselines_are(settings, project, situation):
    """Each level decides unless one above it does; a relative folder lies under the root folder."""
    arguments, variable, ini, expected = FOLDERS[situation]
    found = settings(*arguments, ini="" if ini is None else f'perf_baselines = "{ini}"', JAXGATE_BASELINES=variable)
    assert found.baselines == project.path / expected


def test_an_absolute_folder_stays(settings, tmp_path):
    assert settings(JAXGATE_BASELINES=str(tmp_path / "store")).baselines == tmp_path / "store"
    assert settings("--perf-baselines", str(tmp_path / "other")).baselines == tmp_path / "other"


def test_recording_is_a_command(settings):
    """It is asked for on the command line, with a reason; no variable can switch it on."""
    found = settings("--perf-update", "--perf-why", "new compiler")
    assert (found.update, found.why) == (Update.BOTH, "new compiler")
    found = settings(JAXGATE_UPDATE="1", PERF_UPDATE="1", JAXGATE_PERF_UPDATE="1", JAXGATE_WHY="because")
    assert (found.update, found.why) == (Update.NOTHING, "")


def test_recording_is_no_ini_key(project):
    """A key in a file that is committed must not rewrite baselines on every run."""
    project.write("pyproject.toml", '[tool.pytest]\nstrict_config = true\nperf_update = "true"\n')
    result = project.pytester.runpytest_inprocess("--co")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*perf_update*"])


GATED = "import jax\ndef test_it(gate):\n    gate(lambda x: x + 1, jax.numpy.ones(3))\n"


@pytest.mark.parametrize(
    ("typed", "variable", "value", "message"),
    [
        ("--perf-time-limit=inf", "CI", "", "expected a number of seconds above 0, found 'inf'"),
        ("--perf-time-limit=nan", "CI", "", "expected a number of seconds above 0, found 'nan'"),
        ("-q", "JAXGATE_STRICT", "2", "JAXGATE_STRICT: expected true or false, found '2'"),
        ("--perf-strict=yes", "CI", "", "--perf-strict"),
        ("-n2", variables.UPGRADE_TO, "NEW=1", "jaxgate upgrade runs one process after the other; drop -n"),
    ],
)
def test_misuse_ends_the_run_before_it_begins(project, monkeypatch, typed, variable, value, message):
    """What makes no sense is a usage error, exit code 4, with a word on what was expected."""
    monkeypatch.setenv(variable, value)
    project.write("test_model.py", GATED)
    result = project.pytester.runpytest_inprocess(typed)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert message in result.stderr.str()
    assert "Traceback" not in result.stderr.str()
    assert "test_model.py" not in result.stdout.str()
    assert not (project.path / "baselines").exists()


def kind_of(*flags, **environ):
    """What a run with these options and variables is for."""
    given = {name: value or True for name, _, value in (flag.partition("=") for flag in flags)}
    given["--perf-against"] = [given["--perf-against"]] if "--perf-against" in given else None
    config = SimpleNamespace(
        getoption=lambda name, default=None: given.get(name, default),
        option=SimpleNamespace(collectonly=False),
        invocation_params=SimpleNamespace(args=flags, dir=ROOT),
    )
    return read_kind(config, environ)[0]


KINDS = {
    "--perf-update=refresh": RunKind.UPDATE,
    "--perf-update=review": RunKind.REVIEW,
    "--perf-update=trim": RunKind.TRIM,
    "--perf-against=HEAD": RunKind.AGAINST,
    "--perf-against=X=1": RunKind.AGAINST_ENV,
    "--perf-plan": RunKind.PLAN,
    "--perf-update=times": RunKind.RECORD_TIMES,
}


@pytest.mark.parametrize("flag", KINDS)
def test_no_two_kinds_of_run_go_together(flag):
    """The error names both. A command asks by a variable."""
    assert kind_of(flag) is KINDS[flag]
    name = flag.partition("=")[0]
    with pytest.raises(pytest.UsageError, match=f"^jaxgate upgrade cannot be .*; drop {name}$"):
        kind_of(flag, **{variables.UPGRADE_TO: "NEW=1"})
    for other in (one for one in KINDS if not one.startswith(name)):
        with pytest.raises(pytest.UsageError) as error:
            kind_of(flag, other)
        assert [one for one in (name, other.partition("=")[0]) if one not in str(error.value)] == []


def test_the_committed_page_is_what_the_table_says():
    """It was made again after the last change of an option."""
    page = (ROOT / "docs/options.md").read_text()
    assert options_page() == page, "run: python -m jaxgate.plugin.options.page > docs/options.md"


def test_variables_that_other_processes_read_are_those_of_the_options():
    options = (table.SIZE, table.CPU_DEVICES, table.TIME_LIMIT)
    assert [option.variable for option in options] == [variables.SIZE, variables.CPU_DEVICES, variables.TIME_LIMIT]


WITH_A_VALUE = [option for option in table.OPTIONS if option.flag and "action" not in option.values.form]
WITH_A_VALUE += [table.AGAINST, table.TARGET]


@pytest.mark.parametrize(
    ("option", "nothing"),
    [*((option, "") for option in WITH_A_VALUE), (table.AGAINST, " ")],
    ids=lambda part: getattr(part, "flag", repr(part)),
)
def test_an_option_with_nothing_after_it_ends_the_run(project, monkeypatch, option, nothing):
    """A variable of that name that is not set in a script must not judge against something else; nothing runs."""
    monkeypatch.setenv("JAXGATE_BASELINES", "elsewhere")  # what it would fall back to
    result = project.write("test_it.py", GATED).run(f"{option.flag}={nothing}")
    assert result.code == 4
    told = result.line(option.flag)
    assert "expected" in told or "invalid" in told  # argparse's own words for words and whole numbers
    assert "passed" not in result.text


def test_what_was_expected_and_what_to_type(project):
    result = project.write("test_it.py", GATED).run("--perf-against=")
    assert (
        result.line("ERROR")
        == "ERROR: --perf-against: expected WHAT, found nothing; write --perf-against=WHAT, or leave it out"
    )


LONG = "a" * 5000


@pytest.mark.parametrize("flag", ["--perf-baselines", "--perf-artifacts", "--perf-against"])
def test_a_path_that_no_system_has_ends_the_run_in_one_line(project, flag):
    """Its beginning and its length are told, no traceback."""
    result = project.write("test_it.py", GATED).run(f"{flag}={LONG}")
    assert result.code == 4
    assert len(result.text) < 1000
    assert f"{flag}: expected" in result.line("ERROR")
    assert "aaaa…" in result.line("ERROR")


def test_a_variable_is_looked_at_too(settings):
    with pytest.raises(pytest.UsageError, match=r"--perf-baselines: expected a folder of its own, found 'a+…"):
        settings(JAXGATE_BASELINES=LONG)
