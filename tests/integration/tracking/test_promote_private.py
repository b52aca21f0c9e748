"""Rows that must not leave the machine are in no byte of the store after a promotion."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from cmtrack.comparison import Answer
from support.faults import draw_no_review
from support.promotions import ACCURACY, promote, registry

N = 120
SETTING = "CMTRACK_PREDICTIONS"
WINDOW = 24
"""Number of consecutive labels that a store contains by chance with probability 2^-24."""


@pytest.fixture
def june() -> pd.DataFrame:
    """Rows with ids, clusters and probabilities that occur nowhere else."""
    rng = np.random.default_rng(6)
    actual = rng.integers(0, 2, N)
    frame = pd.DataFrame({"y": np.where(actual == 1, "yes", "no")})
    frame["id"] = [f"row-{value:08x}" for value in rng.integers(0, 2**32, N)]
    frame["person"] = [f"person-{value:08x}" for value in np.repeat(rng.integers(0, 2**32, 60), 2)]
    for version, skill in {1: 0.5, 2: 2.0}.items():
        ones = 1 / (1 + np.exp(-skill * (2 * actual - 1) - rng.normal(size=N)))
        frame[f"v{version}_p_no"] = 1 - ones
        frame[f"v{version}_p_yes"] = ones
    return frame


def parts_of(content: bytes) -> Iterator[bytes]:
    """A file's bytes and, for archives, tables and embedded images, the bytes inside them.

    The curves of an evaluation are counts of rows by score, which every setting keeps. Only these
    counts are left out.
    """
    if content.startswith(b"{"):
        data = json.loads(content)
        for name in ("scores", "hits"):
            data.get("statistics", {}).pop(name, None)
        content = json.dumps(data).encode()
    yield content
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from parts_of(archive.read(name))
    elif content.startswith(b"\x1f\x8b"):
        yield from parts_of(gzip.decompress(content))
    elif content.startswith(b"PAR1"):
        frame = pq.read_table(io.BytesIO(content)).to_pandas()
        for name in frame:
            yield "\n".join(map(str, frame[name])).encode()
            yield frame[name].to_numpy().tobytes() if frame[name].dtype != object else b""
    for embedded in re.findall(rb"base64,([A-Za-z0-9+/=]{100,})", content):
        yield base64.b64decode(embedded)


def store_in(folder: Path) -> list[bytes]:
    parts = []
    for path in folder.rglob("*"):
        if path.is_file():
            parts += parts_of(path.read_bytes())
    return parts


def spellings_of_probability(value: float) -> list[bytes]:
    """A probability as text with 7 digits, as 4 bytes and as 8 bytes."""
    # The last digit may be rounded in another way.
    text = f"{value:.9f}"[:9].encode()
    stored = round(value, 7)
    numbers = [np.float32(value), np.float64(value), np.float32(stored), np.float64(stored)]
    return [text, *(number.tobytes() for number in numbers)]


def spellings_of_labels(frame: pd.DataFrame) -> list[bytes]:
    """The labels of consecutive rows as texts and as class numbers."""
    labels = frame.y.tolist()[:WINDOW]
    codes = (frame.y == "yes").to_numpy()[:WINDOW]
    texts = [sign.join(labels) for sign in (",", ", ", "\n", ";", "\t", '","', '", "', "', '")]
    texts += [sign.join(map(str, codes.astype(int))) for sign in ("", ",", ", ", "\n", " ")]
    kinds = ("int8", "int16", "int32", "int64", "float32", "float64")
    packed = [codes.astype(kind).tobytes() for kind in kinds]
    return [*(text.encode() for text in texts), *packed, np.packbits(codes).tobytes() * 2]


def found_in(folder: Path, frame: pd.DataFrame) -> dict[str, int]:
    """The number of ids, clusters, probabilities and sequences of labels that a store contains."""
    parts = store_in(folder)

    def count(spellings: list[list[bytes]]) -> int:
        return sum(any(text in part for text in one for part in parts) for one in spellings)

    chances = frame.filter(like="_p_").to_numpy().ravel()
    return {
        "ids": count([[text.encode()] for text in frame.id]),
        "clusters": count([[text.encode()] for text in frame.person]),
        "probabilities": count([spellings_of_probability(value) for value in chances]),
        "labels": count([[one] for one in spellings_of_labels(frame)]),
    }


@pytest.mark.parametrize(
    "setting",
    ["off", *(pytest.param(one, marks=pytest.mark.slow) for one in ("labels", "auto"))],
)
def test_the_store_contains_only_what_the_setting_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, june: pd.DataFrame, setting: str
) -> None:
    draw_no_review(monkeypatch)
    monkeypatch.setenv(SETTING, setting)
    monkeypatch.setenv("CMTRACK_ROW_IDS", "on")
    with registry(tmp_path, 2) as client:
        options = {"y_pred": None, "y_prob": "v{version}_p_*", "rank_by": ACCURACY}
        promotion = promote(2, june, groups="person", **options)
        assert promotion.answer is Answer.PROMOTE
        tags = client.get_run(promotion.run_id).data.tags
    assert str(N) in tags["cmtrack.record"]
    found = found_in(tmp_path, june)
    if setting == "off":
        assert found == {"ids": 0, "clusters": 0, "probabilities": 0, "labels": 0}
    elif setting == "labels":
        assert (found["ids"], found["clusters"], found["probabilities"]) == (0, 0, 0)
    else:
        # The search finds what is there.
        assert found["ids"] == N
        assert found["probabilities"] > 3 * N
        assert found["labels"] > 0


@pytest.mark.slow
def test_figures_contain_no_row_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, june: pd.DataFrame
) -> None:
    monkeypatch.setenv(SETTING, "off")
    with registry(tmp_path, 2):
        options = {"y_pred": None, "y_prob": "v{version}_p_*", "rank_by": ACCURACY}
        promote(2, june, groups="person", **options)
    assert found_in(tmp_path, june) == {"ids": 0, "clusters": 0, "probabilities": 0, "labels": 0}
