"""``jaxgate tensorboard``: open the profiles of the last run, and say where each case's trace is."""

from __future__ import annotations

import argparse
import os
import socket
import sys
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn
from urllib.parse import quote

from jaxgate.cli.console import refuse, say, tell

HOST = "127.0.0.1"
"""Never another address: profiles show source lines and argument names."""
PORT = 6006
_PROFILE = ".xplane.pb"


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Declare ``jaxgate tensorboard``."""
    board = command(
        "tensorboard",
        lambda known: open_tensorboard(Path(known.logdir), known.port, links_only=known.links or known.json),
        help="open the profiles of the last run in TensorBoard, with a link to the trace of each side of each case",
        description="Print links to the traces of the cases that the last run profiled, then start TensorBoard on this "
        "machine only. Exit code 1 if there is no profile, 2 if TensorBoard is not installed or the port is taken.",
    )
    board.add_argument(
        "--logdir", default="perf-artifacts", metavar="DIR", help="folder of the bundles (default: perf-artifacts)"
    )
    board.add_argument("--port", type=int, default=None, help="default: 6006, or any free one")
    board.add_argument("--links", action="store_true", help="print the links and start nothing; so does --json")


def open_tensorboard(folder: Path, port: int | None, *, links_only: bool) -> int:
    """Print a link for each profile, then become TensorBoard, unless ``links_only``.

    ``None`` for ``port`` takes TensorBoard's usual one, or any where that is taken. Gives 1 if there is no profile, 2 if
    TensorBoard is not installed or the port is taken.
    """
    links = deep_links(folder)
    if not links:
        return _refuse(
            f"expected profiles under {folder}, found none; a failing case leaves one, or `pytest perf --perf-profile=always`",
            code=1,
        )
    chosen: int | None = PORT if port is None else port
    if not links_only:
        if find_spec("tensorboard") is None or find_spec("xprof") is None:
            return _refuse("TensorBoard and xprof are not installed; pip install 'jaxgate[tensorboard]'", code=2)
        free = _free(chosen or 0)
        if free is None and port is not None:
            return _refuse(f"port {port} is taken; choose another one with --port", code=2)
        chosen = free if free is not None else _free(0)
    address = f"http://{HOST}:{chosen}"
    tell(links={case: {side: address + link for side, link in sides.items()} for case, sides in links.items()})
    for case, sides in links.items():
        say(case)
        for side, link in sides.items():
            say(f"  {side:<10} {address}{link}")
    if not links_only:
        _become(folder, chosen)
    return 0


def _become(folder: Path, port: int | None) -> NoReturn:
    """Become TensorBoard, so that Ctrl-C and the exit code are its own."""
    say("")
    say(f"TensorBoard: http://{HOST}:{port}/  (Ctrl-C ends it)")
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", HOST, "--port", str(port)]
    os.execv(sys.executable, command)  # noqa: S606 - a fixed command line, no shell


def deep_links(folder: Path) -> dict[str, dict[str, str]]:
    """TensorBoard's links to traces, by case and side, without the server: ``/?run=…&tag=trace_viewer@&host=…#profile``."""
    links: dict[str, dict[str, str]] = {}
    for file in sorted(folder.rglob(f"plugins/profile/*/*{_PROFILE}")):
        session = file.parent
        side = session.parents[2]
        if not side.is_relative_to(folder) or side == folder:
            continue  # the folder given is a part of a bundle: no case is known
        run = f"{side.relative_to(folder).as_posix()}/{session.name}"
        host = file.name.removesuffix(_PROFILE)
        case = side.parent.relative_to(folder).as_posix()
        link = f"/?run={quote(run, safe='/')}&tag=trace_viewer@&host={quote(host)}#profile"
        links.setdefault(case, {})[side.name] = link
    return {case: dict(sorted(sides.items(), reverse=True)) for case, sides in links.items()}


def _free(port: int) -> int | None:
    """The port if nobody listens there, any free one for 0, else ``None``."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return None
        number: int = listener.getsockname()[1]
        return number


_refuse = partial(refuse, "tensorboard")
