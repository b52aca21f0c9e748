"""What holds for every framework's hook, with and without the framework."""

from __future__ import annotations

import subprocess
import sys
import tomllib

import numpy as np
import pytest

from cmtrack_integrations._hook import class_codes, name_classes
from support import ROOT

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]
FRAMEWORKS = sorted(
    path.stem
    for path in (ROOT / "integrations" / "cmtrack_integrations").glob("[!_]*.py")
    if f'with needs("{path.stem}")' in path.read_text(encoding="utf-8")
)


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_that_is_not_installed_is_one_sentence_with_its_extra(name):
    hidden = [name, "pytorch_lightning"]
    code = (
        "import sys\n"
        f"for name in {hidden!r}: sys.modules[name] = None\n"
        "import cmtrack_integrations\n"
        f"try: import cmtrack_integrations.{name}\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    (said,) = done.stdout.strip().splitlines()
    assert said.startswith(f"cmtrack_integrations.{name} needs ")
    assert said.endswith(
        f"which is not installed: pip install '.[{name}]' in the folder of cmtrack's source"
    )


def test_every_hook_is_an_extra():
    assert len(FRAMEWORKS) > 7
    assert set(FRAMEWORKS) <= set(EXTRAS)


def test_labels_of_models_that_count_their_classes():
    assert class_codes([[0, 1], [1, 0]]).tolist() == [1, 0]
    assert class_codes(np.array([[2.0], [1.0]])).tolist() == [2, 1]
    assert class_codes(["a", "b"]) == ["a", "b"]
    with pytest.raises(ValueError, match="labels or one-hot rows"):
        class_codes([[0.5, 0.5]])
    three = np.zeros((2, 3))
    assert name_classes([0, 1], None, three)[1] == [0, 1, 2]
    assert name_classes([0, 3], None, three)[1] is None  # the labels are no class numbers
    assert name_classes([0, 1], None, np.zeros(2))[1] == [0, 1]
    y, labels = name_classes([1, 0], ["x", "y"], three)
    assert (y.tolist(), labels) == (["y", "x"], ["x", "y"])
    assert name_classes([5, 7], [5, 7])[0].tolist() == [5, 7]
    assert name_classes(["x"], ["x", "y"]) == (["x"], ["x", "y"])
    with pytest.raises(ValueError, match="y_true must be in 0 … 1 for 2 labels"):
        name_classes([2], ["x", "y"])
