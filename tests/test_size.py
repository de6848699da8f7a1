"""Each room is as large as docs/architecture.md allows, and no larger: growth is a decision in review."""

import re

import pytest
from support.paths import REPOSITORY

ITSELF = "src/jaxgate/ itself"
ALLOWED = {
    room: int(most.replace(",", ""))
    for room, most in re.findall(
        r"^\| (`\S+`(?: itself)?) \| ([\d,]+) \|$",
        (REPOSITORY / "docs/architecture.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
}
COUNTED = {".py", ".html", ".css", ".js"}


def room_of(file):
    """The room that the page has for a file."""
    top, *rest = file.parts
    if top != "src":
        return f"{top}/"
    rest = rest[1:]  # jaxgate
    if len(rest) == 1 or rest == ["ext", "__init__.py"]:
        return ITSELF
    return f"ext/{rest[1]}/" if rest[0] == "ext" else f"{rest[0]}/"


def sizes():
    """Lines of every room."""
    found = {}
    for top in ("src/jaxgate", "tests", "workloads", "perf", "ci"):
        for path in (REPOSITORY / top).rglob("*"):
            if path.suffix in COUNTED and path.is_file():
                room = room_of(path.relative_to(REPOSITORY))
                found[room] = found.get(room, 0) + len(path.read_text(encoding="utf-8").splitlines())
    return found


SIZES = sizes()


def test_the_page_has_every_room():
    """A new room needs a number, and one that is gone has none."""
    assert {room.replace("`", "") for room in ALLOWED} == set(SIZES)


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_is_no_larger_than_allowed(room):
    """Take something away, or write the new number into docs/architecture.md and say why."""
    assert SIZES[room.replace("`", "")] <= ALLOWED[room]
