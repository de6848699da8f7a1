"""Planted regressions in repositories of 60 commits, and what ``jaxgate bisect`` makes of them.

``python -m tests.bisections`` builds each repository, runs the command as a user would, and checks the commit that it names and
the number of steps. It takes minutes, so ``make test`` does not run it; ``tests/cli/test_bisect.py`` does the same with fewer
commits.
"""
