"""Scripts that the tests run as a user runs them."""

from __future__ import annotations

import os

from support import ROOT


def environment_without(*prefixes: str) -> dict[str, str]:
    """The environment with this checkout on the path, and no variable that begins with MLFLOW_ or such a prefix."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "integrations"), os.environ.get("PYTHONPATH", "")])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MLFLOW_", *prefixes))}
    return kept | {"PYTHONPATH": paths}
