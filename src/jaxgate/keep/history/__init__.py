"""The history of runs, in a database. Importing it imports SQLAlchemy, so it is imported where a run is remembered or shown."""

from jaxgate.keep.history.place import HistoryError, Place, find_place
from jaxgate.keep.history.run_points import history_run
from jaxgate.keep.history.saved_run import read_saved_run
from jaxgate.keep.history.schema import SCHEMA
from jaxgate.keep.history.store import HistoryStore
