"""Runs the checks of checks.txt: `python -m checks`, with the variables that .ci/try-clients.sh sets."""

import sys

from . import batches, broken, endpoints, lists, numbers, payments, retries, tokens  # noqa: F401
from .suite import run

sys.exit(1 if run() else 0)
