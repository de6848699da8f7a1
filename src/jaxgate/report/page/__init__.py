"""HTML pages in one file: of a run or of several, of a history, of two sides. They write and read no files."""

from jaxgate.report.page.diff_page import diff_document
from jaxgate.report.page.document import ADDS_CHARTS
from jaxgate.report.page.history_page import history_document
from jaxgate.report.page.run_page import Result, run_page
