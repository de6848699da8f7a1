"""A picture of a terminal: what stood there at the end, in its colours, and nothing that has to be fetched."""

import re

from ci.picture import draw

PRINTED = "\x1b[31mREGRESSED\x1b[0m  a/b\r\nprofiling, 2 s so far\rprofiling, 3 s so far\x1b[K\rdone\r\n"


def test_it_shows_what_a_terminal_shows():
    """A line that was written over is gone, colours stay, and an escape is no text."""
    drawn = draw(PRINTED, "A title")
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", drawn)
    assert [text.replace("&#160;", " ").strip() for text in texts if text.strip()] == [
        "A title",
        "REGRESSED",
        "a/b",
        "done",
    ]
    assert "\x1b" not in drawn


def test_it_needs_nothing_from_elsewhere():
    assert "@font-face" not in draw(PRINTED, "")
    assert "url(http" not in draw(PRINTED, "")
