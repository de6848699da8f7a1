"""Draw what a command printed in a terminal as an SVG for the docs: ``python ci/picture.py TITLE < output > docs/NAME.svg``.

Run the command under ``script -q -c "stty cols 100; COMMAND" output``, so that it has colours and a width; leave of the output what
the picture shall show, ``[…]`` for what was between.
"""

from __future__ import annotations

import re
import sys
from io import StringIO

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 100
_WEB_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def draw(printed: str, title: str) -> str:
    """What a terminal of 100 columns shows, as an SVG that needs nothing from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, legacy_windows=False)
    console.print(Text.from_ansi(printed.replace("\r\n", "\n").strip()), highlight=False)
    return _WEB_FONT.sub("", console.export_svg(title=title, theme=MONOKAI))


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and its title
        sys.exit(
            f"expected one argument, the title, found {len(sys.argv) - 1}: python ci/picture.py TITLE < output > picture.svg"
        )
    sys.stdout.write(draw(sys.stdin.read(), sys.argv[1]))
