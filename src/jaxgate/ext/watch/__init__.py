"""What the tests of a project compile, watched: a report that pays at once, and a lock file."""
