"""A driver of NVIDIA GPUs for tests: what they ask first of any, by the names of ``nvidia-ml-py`` 13."""
# ruff: noqa: N802 - it speaks as the real one does


class FakeNvmlError(Exception):
    """As ``pynvml.NVMLError``."""


class FakeDriver:
    """Finds its devices, each handle being its unique name; a test's own driver adds what it is asked about them."""

    NVMLError = FakeNvmlError

    def __init__(self, *devices):
        self.devices = list(devices)

    def nvmlDeviceGetCount(self):
        return len(self.devices)

    def nvmlDeviceGetHandleByIndex(self, index):
        if not 0 <= index < len(self.devices):
            raise FakeNvmlError("Invalid Argument")
        return self.devices[index]

    def nvmlDeviceGetHandleByUUID(self, name):
        if name not in self.devices:
            raise FakeNvmlError("Not Found")
        return name
