"""The pictures in README and on the site show words that cmtrack still writes."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from types import ModuleType

import numpy as np
import pytest
from matplotlib.text import Text

from cmtrack import evaluate
from support import ROOT

DOCS = ROOT / "docs"
WORDS = json.loads((DOCS / "images" / "words.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def pictures() -> ModuleType:
    """``docs/pictures.py``."""
    found = importlib.util.spec_from_file_location("cmtrack_docs_pictures", DOCS / "pictures.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_every_picture_has_its_phrases_and_is_small(pictures):
    files = [*DOCS.glob("images/*.png"), *DOCS.glob("_static/*.png")]
    assert {path.relative_to(DOCS).as_posix() for path in files} == set(pictures.PICTURES)
    assert set(WORDS) == set(pictures.PICTURES)
    assert all(WORDS.values())
    assert max(path.stat().st_size for path in files) < 150_000


def test_phrases_are_sentences_without_numbers_and_names(pictures):
    text = "Six of the 7 runs may be the best.\n “naive Bayes” scores 71.4% [61.4, 79.7]. 0.39"
    assert pictures.phrases(text) == [
        "# of the # runs may be the best.",
        "“…” scores # [#, #]. #",
    ]
    assert pictures.phrases("linear SVM: binary/f1, −0.043") == ["…: binary/f1, #"]
    assert pictures.phrases("0.431 – 12%") == []


def test_the_texts_of_a_page_are_those_of_its_nodes(pictures):
    page = "<style>p {}</style><p>Rank 2 by <b>MCC</b> &lt; 3</p><script>var a;</script>"
    assert pictures.phrases_of(pictures.TextNodes(page).texts) == ["Rank # by", "MCC"]


def test_a_changed_word_of_a_figure_is_found_and_named(pictures):
    rng = np.random.default_rng(0)
    scores = rng.random(200)
    drawn = evaluate(rng.random(200) < scores, y_prob=scores).figures()["reliability"]
    name = "images/reliability.png"
    words = {name: pictures.phrases_of(pictures.texts_of_figure(drawn))}
    assert pictures.outdated(words, {"figures": set(words[name])}) == []
    changed = next(text for text in drawn.findobj(Text) if pictures.phrases(text.get_text()))
    (phrase,) = pictures.phrases(changed.get_text())
    changed.set_text("Another word")
    texts = {"figures": set(pictures.phrases_of(pictures.texts_of_figure(drawn)))}
    assert pictures.outdated(words, texts) == [
        f"docs/images/reliability.png shows “{phrase}”, which cmtrack no longer writes. "
        "To make the pictures again, run: python docs/pictures.py"
    ]


CHECK = """
import json, sys, pictures
words, changed = json.load(sys.stdin)
texts = pictures.texts_now()
print(json.dumps([pictures.outdated(words, texts), pictures.outdated(changed, texts)]))
"""


@pytest.mark.slow
def test_the_pictures_show_words_that_cmtrack_writes():
    changed = {name: [f"{phrases[0]}!", *phrases[1:]] for name, phrases in WORDS.items()}
    folders = (ROOT, ROOT / "integrations", DOCS, DOCS / "_pages")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        input=json.dumps([WORDS, changed]),
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    today, faults = json.loads(done.stdout.splitlines()[-1])
    assert today == []
    assert [fault.split()[0] for fault in faults] == [f"docs/{name}" for name in WORDS]
    for fault, phrases in zip(faults, WORDS.values(), strict=True):
        assert f"shows “{phrases[0]}!”, which" in fault
