"""What the site's gallery does with a script: whether it is run, which figures are shown, and what is said if not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from support import ROOT

pytest.importorskip("sphinx_gallery")


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    import example_gallery

    yield example_gallery
    del sys.modules["example_gallery"]


def test_a_script_is_run_where_all_that_it_imports_at_its_top_is_installed(
    gallery: ModuleType, tmp_path: Path
) -> None:
    script = tmp_path / "one.py"
    script.write_text(
        "import json, nowhere_b.deep\nfrom nowhere_a import x\n\ndef later():\n    import nowhere_c\n"
    )
    assert gallery.missing(script) == ["nowhere_a", "nowhere_b"]
    pattern = gallery.configuration(run=True)["filename_pattern"]
    assert "segments" in pattern
    assert ("hooks_torch" in pattern) is not bool(
        gallery.missing(ROOT / "examples" / "hooks_torch.py")
    )


def test_the_page_of_a_script_that_is_not_run_says_why(
    gallery: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gallery, "missing", lambda script: ["keras", "torch"])
    source = [".. _anchor:\n\nA title\n=======\n\nA text.\n"]
    gallery.say_what_did_not_run(None, "gallery/generated/examples/hooks_keras", source)
    assert source[0].startswith(
        ".. _anchor:\n\nA title\n=======\n\n.. note::\n\n   This script was not run for this page: "
    )
    assert (
        "“keras” and “torch” are not installed where the site was built.\n\nA text.\n" in source[0]
    )
    monkeypatch.setattr(gallery, "missing", lambda script: [])
    quick = ["A title\n=======\n\nA text.\n"]
    gallery.say_what_did_not_run(None, "gallery/generated/examples/table_engines", quick)
    assert (
        ".. note::\n\n   For this page the script was run with ``--quick``.\n\nA text.\n"
        in quick[0]
    )
    other = ["A title\n=======\n\nA text.\n"]
    gallery.say_what_did_not_run(None, "guide/frameworks", other)
    assert other == ["A title\n=======\n\nA text.\n"]


def test_the_figures_that_a_block_saves_are_shown_in_its_order(
    gallery: ModuleType, tmp_path: Path
) -> None:
    for name in ("b_two.png", "a.png", "not_saved.png"):
        (tmp_path / name).write_bytes(name.encode())
    taken = [tmp_path / "images" / f"{k}.png" for k in range(3)]
    taken[0].parent.mkdir()
    variables = {"src_file": str(tmp_path / "one.py"), "image_path_iterator": iter(map(str, taken))}
    block = (
        "code",
        'figure.savefig("b_two.png")\nother.savefig("a.png")\nprint("not_saved.png")\n',
        1,
    )
    shown = gallery.saved_figures(block, variables, {"src_dir": str(tmp_path)})
    assert [path.read_bytes() for path in taken[:2]] == [b"b_two.png", b"a.png"]
    assert not taken[2].exists()
    assert shown.index("0.png") < shown.index("1.png")
    assert "b two, a" in shown
