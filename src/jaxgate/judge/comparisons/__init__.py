"""Two sides beside each other: runs, revisions and environments."""
