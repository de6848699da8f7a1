"""What a test calls its case: readable, fit for a file, the same in every process, and apart from all others."""

import re

import pytest

from jaxgate.model.workload import Case, case_name, namesakes, possible_names


def computation():
    """A case is built when it is run; these are named."""
    raise NotImplementedError


@pytest.mark.parametrize(
    ("node", "given", "expected"),
    [
        ("perf/test_model.py::test_step", None, ("model", "step")),
        ("test_model.py::test_step", None, ("model", "step")),
        ("a/b/test_train_loop.py::test_step_2", None, ("train_loop", "step_2")),
        ("perf/model_test.py::test_step", None, ("model_test", "step")),
        ("perf/test_model.py::test_step[small]", None, ("model", "step-small")),
        ("perf/test_model.py::test_step[8-float32]", None, ("model", "step-8-float32")),
        ("perf/test_model.py::test_step[0.5]", None, ("model", "step-0.5")),
        ("perf/bench.py::check_step", None, ("bench", "check_step")),
        ("perf/test_model.py::test_step[small]", "mlp", ("model", "mlp")),
        ("perf/test_model.py::test_step[small]", "layers/mlp", ("layers", "mlp")),
        ("perf/test_model.py::test_step[small]", "layers/mlp-2.b", ("layers", "mlp-2.b")),
    ],
)
def test_a_plain_name_is_kept(node, given, expected):
    """File and test name the case, parameters follow a hyphen; name= replaces the sentence, or family and sentence."""
    assert case_name(node, given) == expected


ODD = {
    "a method": "TestModel::test_step",
    "a method with a parameter": "TestModel::test_step[small]",
    "a nested class": "TestModel::TestInner::test_step",
    "spaces": "test_step[two words]",
    "a path": "test_step[a/b]",
    "a path upwards": "test_step[../../x]",
    "colons": "test_step[a::b]",
    "quotes": "test_step['a']",
    "a line break": "test_step[a\nb]",
    "an escape": "test_step[\\xff]",
    "not ASCII": "test_step[größe]",
    "not ASCII at all": "test_步骤",
    "an empty parameter": "test_step[]",
    "brackets in a parameter": "test_step[a[0]]",
    "a parameter that ends in a dot": "test_step[a.]",
    "a leading underscore": "test__step",
    "nothing but the prefix": "test_",
    "a very long parameter": f"test_step[{'x' * 400}]",
}


@pytest.mark.parametrize("what", ODD)
def test_any_test_makes_a_case(what):
    """Whatever pytest calls a test, its case has a name that is a file's."""
    family, sentence = case_name(f"perf/test_model.py::{ODD[what]}", None)
    named = Case(family=family, sentence=sentence, build=computation)
    assert family == "model"
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", named.sentence)
    assert len(f"{named.sentence}.json") <= 200


@pytest.mark.parametrize("file", ["test__model.py", "test_.py", "__main__.py", "test_größe.py", "test_a b.py"])
def test_any_file_makes_a_family(file):
    family, sentence = case_name(f"perf/{file}::test_step", None)
    assert Case(family=family, sentence=sentence, build=computation).family == family


ALIKE = [
    *("test_step[a b]", "test_step[a/b]", "test_step[a:b]", "test_step[a  b]", "test_step[a-b]", "test_step[a-b-]"),
    *("TestA::test_b", "TestA::test_b[]", "TestA-test_b", "test_step[ä]", "test_step[ö]", "test_step[]", "test_step"),
]


def test_tests_that_look_alike_stay_apart():
    """Where characters had to go a hash keeps the names of two tests distinct."""
    names = [case_name(f"perf/test_model.py::{test}", None) for test in ALIKE]
    assert len(set(names)) == len(ALIKE)


def test_a_name_is_stable():
    """The same test has the same name in every process: a baseline is found by it."""
    assert case_name("perf/test_model.py::TestModel::test_step", None) == case_name(
        "elsewhere/test_model.py::TestModel::test_step", None
    )
    _, sentence = case_name("perf/test_model.py::test_step[two words]", None)
    assert re.fullmatch(r"step-two-words-[0-9a-f]{6}", sentence)


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        ("TestTrain::test_step", "TestTrain.step"),
        ("TestTrain::test_step[16-float32]", "TestTrain.step-16-float32"),
        ("TestTrain::TestInner::test_step", "TestTrain.TestInner.step"),
        ("Training::check_step", "Training.check_step"),
        ("TestTrain::test_step[a::b]", r"TestTrain.step-a-b-[0-9a-f]{6}"),
    ],
)
def test_a_method_reads_as_in_python(test, sentence):
    """Class and method with a dot between them, no prefix, and no hash where nothing had to go."""
    assert re.fullmatch(sentence, case_name(f"perf/test_model.py::{test}", None)[1])


def test_the_folder_is_in_another_possible_name():
    """Where a file has a namesake; what a test was recorded under before is possible, too."""
    assert possible_names("test_model.py::test_step", None) == (("model", "step"),)
    assert possible_names("a/b/test_model.py::test_step", None) == (("model", "step"), ("a.b.model", "step"))
    assert possible_names("a/test_model.py::test_step", "mlp") == (("model", "mlp"), ("a.model", "mlp"))
    assert possible_names("a/test_model.py::test_step", "layers/mlp") == (("layers", "mlp"),)
    before = "TestA-test_b-" + case_name("test_model.py::TestA::test_b", "TestA::test_b")[1][-6:]
    assert possible_names("test_model.py::TestA::test_b", None) == (("model", "TestA.b"), ("model", before))


def test_folders_stay_apart():
    families = {possible_names(f"{folder}/test_m.py::test_x", None)[1][0] for folder in ("ä", "ö", "a b", "a-b", "a/b")}
    assert len(families) == 5


def test_namesakes_are_files_of_one_name():
    tests = ["a/test_m.py::test_x", "a/test_m.py::test_y", "b/test_m.py::test_x", "b/test_n.py::test_x"]
    assert namesakes(tests) == {"a/test_m.py", "b/test_m.py"}


@pytest.mark.parametrize(
    ("test", "sentence"),
    [
        (r"test_ids[gr\xf6\xdfe-float32]", r"ids-grosse-float32-[0-9a-f]{6}"),
        ("test_ids[größe]", r"ids-grosse-[0-9a-f]{6}"),
        ("test_naïve", r"naive-[0-9a-f]{6}"),
        (r"test_ids[\u6b65]", r"ids-[0-9a-f]{6}"),
    ],
)
def test_letters_that_have_a_plain_one_stay_readable(test, sentence):
    """With a hash, as another test may have the plain ones; what was recorded without them is possible, too."""
    found = [one for _, one in possible_names(f"test_model.py::{test}", None)]
    assert re.fullmatch(sentence, found[0])
    assert found[-1][-6:] == found[0][-6:]
    assert "grosse" not in found[-1]
