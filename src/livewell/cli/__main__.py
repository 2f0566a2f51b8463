"""`python -m livewell.cli` is `livewell`: how worker processes start one another."""

from livewell.cli import main

if __name__ == "__main__":
    main()
