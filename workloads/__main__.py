"""Write the families' docstrings into workloads/README.md, below what stands there by hand: ``python -m workloads``."""

import ast
import re
from pathlib import Path

README = Path(__file__).with_name("README.md")
MARK = "<!-- Below are the docstrings of the families: `python -m workloads` writes them. -->"


def page(text: str) -> str:
    """The page with the docstring of each family of its table, in the table's order.

    Args:
        text: The page as it is.

    Raises:
        ValueError: If it lacks the mark.
    """
    above, mark, _ = text.partition(MARK)
    if not mark:
        raise ValueError(f"expected a line {MARK} in {README.name}, found none")
    families = re.findall(r"^\| `(\w+)` \|", above, flags=re.MULTILINE)
    sections = [f"## {name}\n\n{explanation(name)}" for name in families]
    return "\n\n".join([above + mark, *sections]) + "\n"


def explanation(family: str) -> str:
    """The docstring of a family's module."""
    single, package = README.with_name(f"{family}.py"), README.with_name(family) / "__init__.py"
    file = single if single.is_file() else package
    return (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").strip()


if __name__ == "__main__":
    README.write_text(page(README.read_text(encoding="utf-8")), encoding="utf-8")
