"""HTML pages in one file."""
