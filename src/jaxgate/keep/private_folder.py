"""The folder of this user's locks on this machine, which nobody else can fill or exchange.

It has one name for all processes of a user, in a folder that all users share: another one may have made it first, with links
in it that lead to files of this user's.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from jaxgate.keep.untrusted import RefusedFileError


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where jaxgate keeps what any checkout may need again."""
    named = environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if Path(named).is_absolute() else Path.home() / ".cache") / "jaxgate"


def lock_folder() -> Path:
    """The folder: in the one for temporary files, or in the user's cache where that name is not this user's alone.

    Raises:
        RefusedFileError: If neither is.
    """
    try:
        return made_private(Path(tempfile.gettempdir()) / f"jaxgate-{os.geteuid()}")
    except OSError as first:
        try:
            cache_folder().mkdir(parents=True, exist_ok=True)
            return made_private(cache_folder() / f"locks-{os.uname().nodename}")  # several machines may share a home
        except (OSError, RuntimeError) as second:  # RuntimeError: nobody knows where this user is at home
            raise RefusedFileError(f"{first}; {second}") from None


def made_private(folder: Path) -> Path:
    """Make a folder for this user alone, or make sure that it is one; a link is none, wherever it leads.

    Raises:
        RefusedFileError: If it is anything else.
        OSError: If it cannot be made.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    about, above = folder.lstat(), folder.parent.stat()
    found = ""
    if not stat.S_ISDIR(about.st_mode):
        found = "a link" if stat.S_ISLNK(about.st_mode) else "a file"
    elif about.st_uid != os.geteuid():
        found = f"one of user {about.st_uid}"
    elif about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = "one that others may write to"
    elif above.st_mode & stat.S_IWOTH and not above.st_mode & stat.S_ISVTX:
        found = f"one that anybody may exchange, as {folder.parent} has no sticky bit"
    if found:
        raise RefusedFileError(f"expected {folder} to be a folder of this user alone, found {found}; remove it")
    return folder
