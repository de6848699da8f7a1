"""A run as a whole: what it knows, its progress, its end and what that leaves behind."""
