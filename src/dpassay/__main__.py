"""`python -m dpassay` is the command line."""

from dpassay.cli.main import main

if __name__ == "__main__":
    main()
