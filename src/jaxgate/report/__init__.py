"""Verdicts as text and Markdown. The only room that converts units."""

from jaxgate.report.case_page import BUFFERS, CHANGES, report, report_sections, verdict_json
from jaxgate.report.commands.acceptance import review_lines, why_not_acceptable
from jaxgate.report.commands.bisection import (
    bisection_table,
    compared_with,
    describe_quantity,
    first_bad_lines,
    likeness,
    moved_twice,
    show_figure,
)
from jaxgate.report.commands.bug_report import bug_report
from jaxgate.report.commands.checkup import checkup_text
from jaxgate.report.commands.history import changes_text, history_json, history_list, history_text, sparkline
from jaxgate.report.commands.inventory import inventory_json, inventory_text
from jaxgate.report.commands.plan import plan_table
from jaxgate.report.commands.policy import policy_page
from jaxgate.report.commands.reduced import reduced_text
from jaxgate.report.commands.repro_file import REPRO_MARK, repro_file
from jaxgate.report.commands.run_diff import diff_json, diff_lines, diff_page, diff_summary
from jaxgate.report.commands.upgrade import upgrade_json, upgrade_lines, upgrade_page
from jaxgate.report.comment import MARK, shortened, unheard
from jaxgate.report.contrast import contrast_lines
from jaxgate.report.drift import accepted_figure, change_lines, creep_line, drift_line, fact_drift_line, step_line
from jaxgate.report.energy import whole_energy
from jaxgate.report.opinions import opinion_lines
from jaxgate.report.printable import printable, printable_line, shell_word
from jaxgate.report.pull_request import error_commands, pull_request_page
from jaxgate.report.results import results_json, verdict_properties
from jaxgate.report.scaling import scaling_lines
from jaxgate.report.side_by_side import side_by_side
from jaxgate.report.stored import RecordingOutcome, RecordingRow, recording_table
from jaxgate.report.summary import count, moved, shared_differences, summary
from jaxgate.report.table import count_outcomes
from jaxgate.report.text import describe_finding, details, explain, in_short
from jaxgate.report.units import show, show_pair, show_rate, show_rate_of, show_ratio, show_share
from jaxgate.report.waivers import expected_failures, unexpected_passes
