"""Entry point of ``python -m cmtrack``, which works even if ``cmtrack`` is not on the path."""

from cmtrack.cli import main

if __name__ == "__main__":
    main()
