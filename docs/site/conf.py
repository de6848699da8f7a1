"""The site: the repository's own pages and one of the API, made by `make docs` into build/docs. Nothing is downloaded.

The root of the sources is the repository, so that a relative link means the same on GitHub and here.
"""

import ast
import re
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
INDEX = "docs/README.md"
API = "docs/site/api"


def navigation() -> dict[str, list[str]]:
    """Read the index of pages: each bold line begins a group, each item below it links one page.

    Returns:
        Caption to the names of its pages, as Sphinx has them: paths from the root without suffix.
    """
    groups = {"": [INDEX.removesuffix(".md")]}
    for line in (REPOSITORY / INDEX).read_text(encoding="utf-8").splitlines():
        if caption := re.fullmatch(r"\*\*(.+)\*\*", line):
            groups[caption[1]] = []
        elif page := re.match(r"- \[.+?\]\((.+?)\.md\)", line):
            path = (REPOSITORY / INDEX).parent / page[1]
            groups[[*groups][-1]].append(path.resolve().relative_to(REPOSITORY).as_posix())
    return {**groups, "Reference": [API]}


def add_navigation(_app: Any, name: str, source: list[str]) -> None:
    """Give the front page the site's navigation, which GitHub would show as code.

    Args:
        name: Page that was read.
        source: Its text, alone in a list, to be changed in place.
    """
    if name == root_doc:
        for caption, pages in navigation().items():
            options = ":hidden:\n" + (f":caption: {caption}\n" if caption else "")
            source[0] += "\n\n```{toctree}\n" + options + "\n" + "\n".join(pages) + "\n```\n"


def colour_python(_app: Any, page: Any) -> None:
    """Highlight indented blocks that are Python; the others are commands and reports.

    Args:
        page: Its tree of nodes, changed in place.
    """
    for block in page.findall(lambda node: node.tagname == "literal_block" and node.get("language") == "none"):
        try:
            ast.parse(block.astext())
        except SyntaxError:
            continue
        block["language"] = "python"


def shorten_defaults(*event: Any) -> tuple[str | None, str | None]:
    """Write a default that no code stands for as ``...``: Sphinx cannot read ``<factory>``, nor break its line.

    Args:
        event: What autodoc says of an object; its signature and its result's type come last.
    """
    signature, returned = event[-2:]
    return signature and re.sub(r"<[^<>]+>", "...", signature), returned


def setup(app: Any) -> None:
    """Connect what this file adds; called by Sphinx."""
    app.connect("source-read", add_navigation)
    app.connect("doctree-read", colour_python)
    app.connect("autodoc-process-signature", shorten_defaults)


project = "jaxgate"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "README"
include_patterns = ["README.md", "docs/*.md", "workloads/README.md", "workloads/contrast/README.md", f"{API}.rst"]
nitpick_ignore_regex = [("py:.*", r"(?!jaxgate\.).*")]  # names of others: their pages would have to be downloaded
RETURNED = [
    "engine.compare_functions.FunctionComparison",
    "model.machine.HardwareKey",
    "ext.targets.model.Target",
    "model.verdict.Verdict",
    "ext.growth.model.GrowthClaim",
    "model.workload.Builder",
]
nitpick_ignore = [("py:class", f"jaxgate.{name}") for name in RETURNED]  # given to users, not made by them: no page

myst_heading_anchors = 3  # links to headings, as GitHub makes them

autodoc_typehints_format = "short"
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes of a class as a list, as its docstring has them
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = "jaxgate"
html_extra_path = ["index.html"]  # leads to the front page, which is README.html
html_copy_source = False
html_show_copyright = False
