"""One run is made of the results of its parts; whatever is missing or does not fit is red."""

import json
from dataclasses import asdict, replace
from shutil import rmtree

import pytest
from support.histories import case, run

from jaxgate.ext.shards.command import merge
from jaxgate.keep.results import read_results
from jaxgate.model.outcome import Shard

SUITE = "5eed"


def part(number, *names, of=2, of_gates=None, **about):
    """What one part left."""
    cases = [case(name, test=f"test_{name}.py::test", **about.pop(name, {})) for name in names]
    gates = about.pop("gates", len(names))
    shard = Shard(number=number, of=of, gates=gates, of_gates=of_gates or gates * of, suite=about.pop("suite", SUITE))
    left = run(number, *cases, shard=about.pop("shard", shard), **about)
    return left if names else replace(left, cases=())


def content(left):
    """As a file: each environment once, cases name it by its place."""
    found = asdict(left)
    environments = []
    for one in found["cases"]:
        environments.append(one["figures"]["environment"] | {"of": one["case"]})
        one["figures"]["environment"] = len(environments) - 1
    return found | {"environments": environments, "unfit": [], "undecided_changed": [], "needs_commit": []}


@pytest.fixture
def merged(tmp_path, capsys):
    """Merges what parts left; gives the exit code, what was printed, and the folder of the whole run."""

    def merged(*parts, **about):
        for number, left in enumerate(parts):
            folder = tmp_path / "parts" / f"part-{number}"
            folder.mkdir(parents=True)
            (folder / "results.json").write_text(left if isinstance(left, str) else json.dumps(content(left)))
            (folder / "summary.md").write_text(f"## the page of part {number}\n")
        code = merge([tmp_path / "parts"], tmp_path / "whole", environ={}, **about)
        return code, capsys.readouterr(), tmp_path / "whole"

    return merged


def test_all_parts_make_one_run(merged):
    """Its cases keep their environments; the page has a line for each part."""
    code, said, folder = merged(part(2, "c", "d"), part(1, "a", "b"))
    assert (code, said.err) == (0, "")
    whole = read_results(folder / "results.json")
    assert [(one.case, one.figures.environment["of"]) for one in whole.cases] == [(name, name) for name in "abcd"]
    assert (whole.green, whole.gate_exit, whole.shard) == (True, 0, None)
    page = (folder / "summary.md").read_text()
    assert page.splitlines() == [
        "## ✅ jaxgate: 4 cases passed, in 2 parts",
        "",
        "- ✅ part 1/2: 2 cases",
        "- ✅ part 2/2: 2 cases",
    ]
    assert {file.name for file in folder.iterdir()} >= {"results.sarif", "codequality.json"}


def test_a_red_part_is_shown_with_its_own_page(merged):
    """A regression that was seen stands before all else."""
    red = part(2, "c", "d", c={"status": "REGRESSED"}, gate_exit=1, green=False)
    code, said, folder = merged(part(1, "a", "b"), red)
    assert code == 1
    assert said.out.splitlines()[-1].startswith("❌ jaxgate: 1 of 4 cases failed, in 2 parts (exit code 1)")
    page = (folder / "summary.md").read_text()
    assert "- ❌ part 2/2: 2 cases, 1 failed: `c`" in page
    assert "### part 2/2\n\n## the page of part 1" in page
    assert "the page of part 0" not in page


WRONG = {
    "lost": ([part(1, "a")], "1 part left no result: 2/2"),
    "twice": ([part(1, "a"), part(1, "a"), part(2, "b")], "1 part left more than one result: 1/2"),
    "whole": ([run(1, case("a")), part(1, "b"), part(2, "c")], "1 result is of no part, but of a whole run"),
    "cut": ([part(1, "a"), part(2, "b", of=3)], "the parts are not cut into one number of parts: 2, 3"),
    "suite": ([part(1, "a"), part(2, "b", suite="other")], "the parts are not cut out of the same tests: 5eed, other"),
    "commit": ([part(1, "a"), part(2, "b", commit="0" * 40)], "the parts are not of one commit"),
    "jaxgate": ([part(1, "a"), part(2, "b", jaxgate="9")], "the parts are not of one jaxgate: 0.1.0, 9"),
    "against": (
        [part(1, "a"), part(2, "b", elsewhere="--perf-against main")],
        "the parts are not held against the same: --perf-against main, stored baselines",
    ),
    "fewer": (
        [part(1, "a", of_gates=3), part(2, "b", of_gates=3)],
        "the parts have 2 of the suite's 3 gates: their machines cut it by other baselines",
    ),
    "overlap": ([part(1, "a", "b"), part(2, "b", "c")], "in several: test_b.py::test"),
    "unreadable": ([part(1, "a"), "{"], "cannot be read"),
}


@pytest.mark.parametrize("name", WRONG)
def test_parts_that_are_not_those_of_one_run_are_red(merged, name):
    """Whatever each of them said, with the reason on the page, too."""
    parts, reason = WRONG[name]
    code, said, folder = merged(*parts)
    assert code == 2
    assert reason in said.out
    assert reason.split(":")[0].split("'")[0] in (folder / "summary.md").read_text()
    whole = read_results(folder / "results.json")
    assert not whole.green


def test_two_tests_of_one_case_are_red_as_in_one_run(merged):
    code, said, _ = merged(part(1, "a"), replace(part(2, "a"), cases=(case("a", test="other.py::test"),)))
    assert code == 1
    assert "expected one test for the case `a`, found other.py::test and test_a.py::test" in said.out


def test_the_severest_end_counts(merged):
    """A baseline that is missing is 3; a part that is broken beside it is worse."""
    missing = part(1, "a", gate_exit=3, green=False)
    broken = part(2, gates=1, gate_exit=2, green=False, not_judged=("test_b.py::test",))
    code, _, folder = merged(missing, broken)
    assert code == 2
    assert "- ❌ part 2/2: 0 cases, 1 not judged" in (folder / "summary.md").read_text()
    rmtree(folder.parent / "parts")
    assert merged(missing, part(2, "b"))[0] == 3


def test_how_many_there_are_can_be_said(merged):
    """Where the parts that are left would not know of more; they must agree with it."""
    code, said, _ = merged(part(1, "a", of=1), of=2)
    assert code == 2
    assert "1 part left no result: 2/2" in said.out


def test_nothing_at_all_is_red(tmp_path, capsys):
    """No file, and a folder without one; nothing is written."""
    (tmp_path / "empty").mkdir()
    for path, reason in ((tmp_path / "empty", "there is no results.json"), (tmp_path / "gone", "cannot be read")):
        assert merge([path], tmp_path / "whole", environ={}) == 2
        assert reason in capsys.readouterr().err
    assert not (tmp_path / "whole").exists()


def test_the_parts_are_not_written_over(tmp_path, capsys):
    """The folder of a whole run is emptied before it is written."""
    (tmp_path / "results.json").write_text(json.dumps(content(part(1, "a", of=1))))
    assert merge([tmp_path], tmp_path, environ={}) == 2
    assert "holds the parts" in capsys.readouterr().err
    assert (tmp_path / "results.json").exists()


def test_the_page_of_a_job_has_the_whole_run(merged, tmp_path):
    merged(part(1, "a", of=1))
    summary = tmp_path / "summary"
    assert merge([tmp_path / "parts"], tmp_path / "whole", environ={"GITHUB_STEP_SUMMARY": str(summary)}) == 0
    assert summary.read_text().startswith("## ✅ jaxgate: 1 case passed, in 1 part")
