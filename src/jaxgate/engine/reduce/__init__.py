"""Two programs of a case, and the smallest part of them that still shows their difference."""
