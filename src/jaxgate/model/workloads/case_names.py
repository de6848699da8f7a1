"""The names of cases: family from the file, sentence from the test. A baseline is found by them in every process."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from pathlib import PurePosixPath

MAX_NAME = 120
"""Characters of a name; file systems end at 255 bytes, and a part file needs some more."""


def case_name(node_id: str, given: str | None) -> tuple[str, str]:
    """Name the case of a test: family from the file, sentence from the test.

    Args:
        node_id: pytest's id, for example ``perf/test_model.py::TestTrain::test_step[small]``.
        given: The name that the user gave: ``sentence`` or ``family/sentence``.

    Returns:
        Family and sentence, both fit for a file name. Where characters had to go, a short hash keeps two
        tests apart.
    """
    return possible_names(node_id, given)[0]


def possible_names(node_id: str, given: str | None) -> tuple[tuple[str, str], ...]:
    """All names that the case of a test may have, the one that it has by itself first; as above.

    It keeps another one that it was recorded under, and has its folder in the family where a file of the same name in
    another folder has tests that gate.
    """
    file, _, test = node_id.partition("::")
    path = PurePosixPath(file)
    stem = path.stem.removeprefix("test_")
    families = [_fit(name, name) for name in (stem, ".".join([*path.parent.parts, stem]))]
    sentence, whole = _sentence(test), test.removeprefix("test_")
    if given is not None:
        family, slash, rest = given.partition("/")
        families, sentence = ([_fit(family, family)], rest) if slash else (families, given)
        whole = sentence
    sentences = [_fit(_plain(sentence), whole), _fit(whole, whole)]
    return tuple(dict.fromkeys((family, sentence) for family in families for sentence in sentences))


def namesakes(tests: Iterable[str]) -> frozenset[str]:
    """The files of these tests that have a name in common, in different folders."""
    files = {test.partition("::")[0] for test in tests}
    names = [PurePosixPath(file).name for file in files]
    return frozenset(file for file in files if names.count(PurePosixPath(file).name) > 1)


def _sentence(test: str) -> str:
    """Of a method its classes and its own name: ``TestTrain::test_step[small]`` is ``TestTrain.step[small]``."""
    names, bracket, parameters = test.partition("[")
    *classes, function = names.split("::")
    return ".".join([*classes, function.removeprefix("test_")]) + bracket + parameters


def _plain(text: str) -> str:
    """The text in ASCII, as far as letters have a plain one: also those that pytest escapes."""
    read = re.sub(r"\\(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", lambda found: chr(int(found[1][1:], 16)), text)
    parts = unicodedata.normalize("NFKD", read.replace("ß", "ss"))
    return "".join(part for part in parts if not unicodedata.combining(part))


def _fit(name: str, whole: str) -> str:
    """A name as that of a file, with a hash of the whole it stands for where characters of that are not in it."""
    readable = re.sub(r"\[(.*)\]$", r"-\1", name)
    fit = re.sub(r"[^A-Za-z0-9._-]+", "-", readable).lstrip("-._").rstrip("-.")[:MAX_NAME]
    if fit == readable and fit and whole.isascii() and "\\" not in whole:
        return fit
    return f"{fit or 'case'}-{hashlib.blake2b(whole.encode(), digest_size=3).hexdigest()}"
