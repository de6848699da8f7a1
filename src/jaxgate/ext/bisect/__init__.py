"""The first commit, or the first release of a package, with which a case is worse."""
