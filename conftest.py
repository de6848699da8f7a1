"""Root of the suite: puts the catalogue on the path (rootdir) and gives the engine's tests pytest's own tester."""

pytest_plugins = ["pytester"]
