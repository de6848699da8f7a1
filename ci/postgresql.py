"""Start a PostgreSQL server of its own, run a command beside it, stop it: ``python ci/postgresql.py COMMAND ...``.

The server lies in a folder that is removed afterwards, and listens on a socket in it alone. The command finds the URL of an
empty database in ``JAXGATE_TEST_DATABASE``. ``make test-postgresql`` runs the tests of the history with it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DATABASE = "JAXGATE_TEST_DATABASE"
USER = "postgres"
"""Whom Debian's package makes: the server refuses to be root's."""
_MISSING = "expected PostgreSQL's initdb and pg_ctl, found none; install them: apt-get install postgresql"


def find_tool(name: str) -> str | None:
    """A program of the server: on the path, or where Debian keeps those of each version, the newest first."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: float(path.parts[4]))
    return shutil.which(name) or (str(versions[-1]) if versions else None)


def main(command: list[str]) -> int:
    """Run the command beside a server.

    Returns:
        Its exit code; 2 if there is no server.
    """
    initdb, pg_ctl = find_tool("initdb"), find_tool("pg_ctl")
    if initdb is None or pg_ctl is None:
        print(f"postgresql: {_MISSING}", file=sys.stderr)
        return 2
    as_user: list[str] = []
    with tempfile.TemporaryDirectory(prefix="jaxgate-postgresql-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            try:
                owner = pwd.getpwnam(USER)
            except KeyError:
                print(f"postgresql: expected a user {USER}, as a server cannot be root's, found none", file=sys.stderr)
                return 2
            os.chown(folder, owner.pw_uid, owner.pw_gid)
            as_user = ["runuser", "-u", USER, "--"]
        data, log = folder / "data", folder / "log"
        made = [
            *as_user,
            initdb,
            "-D",
            str(data),
            "-U",
            "jaxgate",
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
        ]
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        started = [*as_user, pg_ctl, "-D", str(data), "-l", str(log), "-w", "-o", options, "start"]
        for step in (made, started):
            done = subprocess.run(
                step, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            if done.returncode:
                said = log.read_text() if log.exists() else done.stdout
                print(f"postgresql: expected a server, found:\n{said}", file=sys.stderr)
                return 2
        try:
            url = f"postgresql+psycopg://jaxgate@/postgres?host={folder}"
            return subprocess.run(command, env=os.environ | {DATABASE: url}, check=False).returncode
        finally:
            stopped = [*as_user, pg_ctl, "-D", str(data), "-m", "immediate", "-w", "stop"]
            subprocess.run(stopped, cwd=folder, stdout=subprocess.DEVNULL, check=False)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
