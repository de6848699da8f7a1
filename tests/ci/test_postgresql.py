"""``ci/postgresql.py``: a server beside a command, or what to install."""

from __future__ import annotations

import sys

import pytest

from ci import postgresql

ASKS = """
import os, sys
from sqlalchemy import create_engine, text
engine = create_engine(os.environ["JAXGATE_TEST_DATABASE"])
with engine.connect() as connection:
    assert "PostgreSQL" in connection.execute(text("SELECT version()")).scalar_one()
engine.dispose()
sys.exit(7)
"""


def test_without_a_server_it_says_what_to_install(monkeypatch, capsys):
    """And runs nothing."""
    monkeypatch.setattr(postgresql, "find_tool", lambda name: None)
    assert postgresql.main(["false"]) == 2
    assert "install them: apt-get install postgresql" in capsys.readouterr().err


@pytest.mark.skipif(
    postgresql.find_tool("initdb") is None, reason="PostgreSQL is not installed: apt-get install postgresql"
)
def test_a_command_has_a_server(monkeypatch):
    """An empty database; the exit code is the command's, and the server is gone afterwards."""
    folders = []
    real = postgresql.tempfile.TemporaryDirectory

    def folder(**about):
        found = real(**about)
        folders.append(found.name)
        return found

    monkeypatch.setattr(postgresql.tempfile, "TemporaryDirectory", folder)
    assert postgresql.main([sys.executable, "-c", ASKS]) == 7
    assert [postgresql.Path(name).exists() for name in folders] == [False]
