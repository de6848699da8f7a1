"""What made a case worse: every suspect that can be named, one module for each kind of it."""
