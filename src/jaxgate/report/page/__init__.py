"""HTML pages in one file: of a run or of several, and what other pages are made with. They write and read no files."""

from jaxgate.report.page.addresses import fragments, to_file, to_fragment
from jaxgate.report.page.diff_page import diff_document
from jaxgate.report.page.document import ADDS_CHARTS, document
from jaxgate.report.page.history_page import history_document
from jaxgate.report.page.parts import Cell, Chart, Column, Group, Section, Spec, Table
from jaxgate.report.page.run_page import Result, charts_section, headline, run_page
from jaxgate.report.page.series import Series, Variants, find_series, find_variants
from jaxgate.report.page.specs import bars, curve, unit_of
