"""Looks at the HTML page in a real browser: ``python -m ci.page`` or ``make page-check``."""
