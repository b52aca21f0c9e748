"""``python -m cmtrack``, which runs the command line if ``cmtrack`` is not on the path."""

from cmtrack.cli import main

if __name__ == "__main__":
    main()
