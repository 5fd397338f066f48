"""`python -m dpassay` is the command line."""

from dpassay.cli import main

main()
