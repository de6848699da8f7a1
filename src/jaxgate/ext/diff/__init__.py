"""Two runs, revisions or kinds of hardware beside each other."""
