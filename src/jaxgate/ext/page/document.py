"""A whole page in one file: its blocks, its style, one script of its own, and a policy that lets nothing else run.

Names come from whoever opened the pull request: the template escapes every text, and a browser runs the script whose hash
the page names. The script sorts, searches and opens what a link leads to; without it the page can be read all the same.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from jaxgate.ext.page.blocks import Block, Section
from jaxgate.report.printable import printable

if TYPE_CHECKING:
    from jinja2 import Environment


def document(*, title: str, sections: Sequence[Section], header: Sequence[Block] = (), kind: str = "") -> str:
    """Put a page together, as HTML.

    ``header`` stands below the heading, and ``kind`` is what that says: ``bad``, ``calm`` or ``good``.
    """
    environment = _environment()
    style, script = source("page.css"), source("page.js")
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'"
    return environment.get_template("page.html").render(
        title=title, sections=sections, header=header, kind=kind, style=style, script=script, policy=policy
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def _environment() -> Environment:
    """What fills the template: everything is escaped, and a name that it is not given is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - heavy; only who writes a page needs it
    from markupsafe import Markup  # noqa: PLC0415 - comes with it

    def shown(value: object) -> object:
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    assert __package__ is not None
    return Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def source(name: str) -> str:
    """A file among the templates, as it is."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]
