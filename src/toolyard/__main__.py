"""``python -m toolyard`` is the command ``toolyard``."""

from toolyard.cli import main

main()
