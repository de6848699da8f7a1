"""Where things are, for tests that read files of the repository."""

from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests/data"
