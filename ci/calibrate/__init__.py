"""The gate's error rates on this machine, measured: ``python -m ci.calibrate``."""
