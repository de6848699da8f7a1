"""The only room that touches disk: baselines, their log, and what is remembered between runs."""

from jaxgate.keep.adopt import adopt_revision
from jaxgate.keep.artifacts import PAGE_MARK, Artifacts, ForeignFolderError, refuse_foreign
from jaxgate.keep.atomic import append_page, write_atomic
from jaxgate.keep.baselines import (
    BaselineStore,
    baseline_files,
    files_of_case,
    read_all,
    read_baseline,
    recorded_by,
    save_baseline,
)
from jaxgate.keep.bisections import (
    copy_files,
    forget,
    forget_old,
    question_file,
    read_bisection,
    save_bisection,
    search_folder,
)
from jaxgate.keep.chart_library import chart_library
from jaxgate.keep.duel_handoff import (
    RESULTS_BYTES,
    Job,
    read_duels,
    read_job,
    read_record,
    take_results,
    write_duels,
    write_job,
    write_record,
    write_results,
)
from jaxgate.keep.floors import DamagedFloorsError, FloorStore
from jaxgate.keep.git import COMMIT, git_command, run_git
from jaxgate.keep.inventory import read_inventory
from jaxgate.keep.jax_defaults import remembered_defaults
from jaxgate.keep.log import LOG_FOLDER, append_log, last_line, log_trimmed
from jaxgate.keep.machine import HELD, Machine
from jaxgate.keep.private_folder import cache_folder as cache_folder
from jaxgate.keep.programs import ProgramStore
from jaxgate.keep.provenance import TRUNKS, ignored, merge_base, read_provenance, uncommitted, utc_now, utc_today
from jaxgate.keep.references import DuelCache, ReferenceCache
from jaxgate.keep.results import UnreadableResultsError, parse_results, read_results, read_run_file
from jaxgate.keep.revision_files import RevisionFiles, commit_of, revision_files
from jaxgate.keep.side_notes import add_note, read_notes
from jaxgate.keep.strict import CorruptBaselineError
from jaxgate.keep.tensorboard_events import can_write_scalars, write_scalars
from jaxgate.keep.times import TimesStore, times_beside
from jaxgate.keep.unreferenced import collect, find_unreferenced, named_by, remove, remove_empty_folders
from jaxgate.keep.untrusted import parse_toml, read_json, read_text
from jaxgate.keep.waivers import FILE, WaiverError, read_drift_starts, read_waivers
