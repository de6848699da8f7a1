"""A whole page in one file: layout, theme, tables that sort, charts, and a policy that lets nothing else run.

Names come from whoever opened the pull request. All text is escaped by the templates, data stands in elements that no text
can close, and a browser runs only the scripts whose hashes the page names.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from jaxgate.ext.page.charts import CONFIG, Section, Spec
from jaxgate.report.printable import printable

if TYPE_CHECKING:
    from jinja2 import Environment

_BEHAVIOUR = "page.js"
_STYLE = "page.css"
_ESCAPES = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
ADDS_CHARTS = "pip install 'jaxgate[page]'"
"""What to type where charts are missing."""


def document(
    *,
    title: str,
    sections: Sequence[Section],
    library: str,
    header: str = "",
    about: Mapping[str, Any] | None = None,
    scripts: Sequence[str] = (),
    data: Mapping[str, Any] | None = None,
    specs: Mapping[str, Spec] | None = None,
) -> str:
    """Put a page together.

    Args:
        title: Of the window, and the heading of a page without a header of its own.
        sections: From top to bottom.
        library: The charts' JavaScript, ``vl_convert.javascript_bundle()``; empty leaves the charts out, and says so.
        header: Template of the header.
        about: What the header is given, as ``it``.
        scripts: Files among the templates that this kind of page needs besides what all have.
        data: What these scripts are given, as JSON.
        specs: Specifications of charts without data, which these scripts fill.

    Returns:
        HTML.
    """
    charts = {chart.key: chart.spec for section in sections for chart in section.charts}
    environment = _environment()
    drawing = library and (charts or specs)
    programs = [script_text(source(name)) for name in (_BEHAVIOUR, *scripts)]
    programs += [script_text(library)] if drawing else []
    style = source(_STYLE)
    given = {"charts": charts, "specs": specs or {}, "config": CONFIG, **(data or {})}
    return environment.get_template("document.html").render(
        title=title,
        sections=sections,
        header=header or "plain_header.html",
        about=about or {"title": title},
        adds_charts=ADDS_CHARTS if (charts or specs) and not library else "",
        style=style,
        programs=programs,
        data=script_json(given),
        policy=_policy(programs, style),
    )


def _policy(programs: Sequence[str], style: str) -> str:
    """The policy of the page: its own scripts by their hashes, its own style, no network.

    Vega places what it draws by ``style`` attributes, which run nothing and load nothing here.
    """
    hashes = " ".join(f"'{_hash(program)}'" for program in programs)
    return (
        f"default-src 'none'; script-src {hashes}; style-src-elem '{_hash(style)}'; style-src-attr 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def script_json(value: object) -> str:
    """JSON for a ``script`` element: no text in it closes the element, or shows otherwise than it is written."""
    return json.dumps(_shown(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(_ESCAPES)


def script_text(program: str) -> str:
    """A program of ours as it may stand in a ``script`` element: a browser reads what was hashed."""
    return program.replace("\r\n", "\n").replace("\r", "\n").replace("</script", r"<\/script").replace("<!--", r"<\!--")


def _shown(value: object) -> Any:
    """Data with its texts as they may be shown: what would act on the reader's screen stands as its number."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {printable(str(name)): _shown(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(one) for one in value]
    return value


@cache
def _environment() -> Environment:
    """What fills the templates: everything is escaped, and a name that a template is not given is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415 - heavy; only who writes a page needs it
    from markupsafe import Markup  # noqa: PLC0415 - likewise

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
