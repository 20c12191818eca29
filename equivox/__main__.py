"""`python -m equivox`."""

from equivox.cli import main

if __name__ == "__main__":
    main()
