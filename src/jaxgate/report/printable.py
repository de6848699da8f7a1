"""Text for a terminal, a log or a page that shows itself and does nothing else.

Names of files and cases, commits and reasons come from whoever opened the pull request: a control character among them
would clear the screen, hide what is red, or turn around the order of what is read.
"""

from __future__ import annotations

import re

_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # the direction of writing
    "\u2028\u2029"  # ends of lines to some
    "\u00ad\u200b-\u200d\u2060-\u2064\ufeff"  # nothing at all
    "\ud800-\udfff]"  # bytes of a name that is no text, which cannot be printed
)


def printable(text: str) -> str:
    """Text with every character that acts on a terminal, or cannot be encoded, as its number; lines stay lines."""
    return _ACTS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable_line(text: str) -> str:
    """The same on one line: a name cannot pretend to be a line of its own."""
    return printable(text).replace("\n", " ")


def shell_word(text: str) -> str:
    """One word of a command that somebody may copy: nothing in it ends the quotes."""
    return "'" + text.replace("'", "'\"'\"'") + "'"
