"""``python -m cmtrack``: the command line if the program ``cmtrack`` is not on the path."""

from cmtrack.cli import main

if __name__ == "__main__":
    main()
