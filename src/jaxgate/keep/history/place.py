"""Where a history is kept: an SQLite file, or a database by its URL, whose password nobody gets to read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from jaxgate.keep import write_atomic
from jaxgate.model import HISTORY_OFF, HISTORY_PLACE

OWN_FOLDER, IGNORED = HISTORY_PLACE.partition("/")[0], ".gitignore"
"""The folder of the default place. It is kept out of git, whatever the project's own rules say."""
_EXPECTED = "expected the path of an SQLite file, the URL of a database, or none"
_SECRETS = ("password", "sslpassword", "passfile")
"""Parameters of a URL that are secret, too."""


class HistoryError(Exception):
    """The history cannot be read or written; the text says why in one line, and has no password in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a history is.

    Attributes:
        shown: For people, without password and parameters.
        file: The SQLite file; ``None`` for another database.
        url: As SQLAlchemy takes it.
    """

    shown: str
    file: Path | None
    url: URL = field(repr=False)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Turn whatever goes wrong inside into one line without a password.

        Raises:
            HistoryError: If anything did.
        """
        try:
            yield
        except HistoryError as error:
            raise HistoryError(f"{self.shown}: {error}") from None
        except Exception as error:  # noqa: BLE001 - drivers raise what they like
            raise HistoryError(f"{self.shown}: {self._without_secrets(_first_line(error))}") from None

    def make_folder(self) -> None:
        """Make the folder of the file, where there is one."""
        if self.file is None:
            return
        self.file.parent.mkdir(parents=True, exist_ok=True)
        ignored = self.file.parent / IGNORED
        if self.file.parent.name == OWN_FOLDER and not ignored.exists():
            write_atomic(ignored, b"*\n")

    def _without_secrets(self, text: str) -> str:
        secrets = [self.url.password, *(self.url.query.get(name) for name in _SECRETS)]
        for secret in secrets:
            for word in (secret,) if isinstance(secret, str) else secret or ():
                text = text.replace(word, "***") if word else text
        return text


def find_place(text: str, root: Path) -> Place | None:
    """The place that an option names.

    Args:
        text: A path, a URL of SQLAlchemy's, or ``none``.
        root: What a path is relative to.

    Returns:
        The place; ``None`` for ``none``.

    Raises:
        HistoryError: If it is none of these. The text is not quoted: it may hold a password.
    """
    if text.strip() == HISTORY_OFF:
        return None
    if "://" not in text:
        return _of_file(root / text)
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise HistoryError(f"{_EXPECTED}, found a URL that cannot be read; it is not shown, for its password") from None
    if url.get_backend_name() == "sqlite":
        if not url.database or url.database == ":memory:":
            raise HistoryError(f"{_EXPECTED}, found SQLite without a file")
        return _of_file(root / url.database)
    rest = text.partition("://")[2]
    if "@" in rest.partition("@")[2]:  # the end of a password would be shown as host or database
        raise HistoryError(f"{_EXPECTED}, found a URL with two @; write the one in the password as %40")
    return Place(shown=url.set(query={}).render_as_string(hide_password=True), file=None, url=url)


def _of_file(path: Path) -> Place:
    if path.exists() and not path.is_file():
        raise HistoryError(f"{_EXPECTED}, found {path}, which is no regular file")
    return Place(shown=str(path), file=path, url=URL.create("sqlite", database=str(path)))


def _first_line(error: Exception) -> str:
    """What the driver says, without SQL and its values."""
    if isinstance(error, ModuleNotFoundError):
        return f"the driver is missing: {error}; for PostgreSQL: pip install 'jaxgate[postgresql]'"
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig if isinstance(error.orig, Exception) else error
    said = str(error).strip().splitlines() or [""]
    name = "" if isinstance(error, OSError | PoolTimeoutError) else f"{type(error).__name__}: "
    return f"{name}{said[0]}"
