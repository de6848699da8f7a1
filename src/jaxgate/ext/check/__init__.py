"""A check of a commit on GitHub that is red also where a run never came to its end."""
