"""The history of runs, in an SQLite file. Some Pythons are built without ``sqlite3``: a run imports it where it is remembered."""

from jaxgate.keep.history.run_points import HistoryError, history_run
from jaxgate.keep.history.saved_run import read_saved_run
from jaxgate.keep.history.store import HistoryStore, find_place
