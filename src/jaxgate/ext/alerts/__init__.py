"""A red case at its line of the source, in the formats that code hosts show beside a diff."""
