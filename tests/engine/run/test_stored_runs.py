"""What earlier runs stored, as a run with a drift budget asks for it."""

import pytest
from support.histories import CASE, FOLDER, case, run

from jaxgate.ext.history.store import HistoryError, HistoryStore, find_place
from jaxgate.ext.history.stored import StoredRuns


def test_all_cases_of_a_folder_are_read_by_one_query(tmp_path, monkeypatch):
    """Each case gets its own runs; one that is not there gets none."""
    store = HistoryStore(find_place("h.sqlite", tmp_path))
    store.append(run(1, case(), case("vmap/loss")))
    store.append(run(2, case(temp_bytes=5)))
    asked = []
    real = HistoryStore.points
    monkeypatch.setattr(HistoryStore, "points", lambda *given: asked.append(given[1:]) or real(*given))
    runs = StoredRuns("h.sqlite", tmp_path)
    assert [point.figures["temp_bytes"] for point in runs.points(CASE, FOLDER)] == [4000, 5]
    assert (len(runs.points("vmap/loss", FOLDER)), runs.points("no/case", FOLDER)) == (1, ())
    assert asked == [(None, FOLDER)]


def test_a_history_that_cannot_be_read_is_tried_once(tmp_path, monkeypatch):
    """A database that does not answer costs one wait, not one for each case; each case says it."""
    (tmp_path / "h.sqlite").write_bytes(b"no database" * 100)
    opened = []
    real = HistoryStore.__init__
    monkeypatch.setattr(HistoryStore, "__init__", lambda *given, **named: opened.append(1) or real(*given, **named))
    runs = StoredRuns("h.sqlite", tmp_path)
    for name in (CASE, "vmap/loss", CASE):
        with pytest.raises(HistoryError, match=r"h\.sqlite: "):
            runs.points(name, FOLDER)
    assert opened == [1]
