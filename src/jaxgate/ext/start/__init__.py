"""The start of a job: what a fresh process does until its first result, with an empty compile cache and with a full one."""
