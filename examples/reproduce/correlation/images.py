"""Pairs of image classes, an easy and a hard one: Fashion-MNIST where it is given, else scikit-learn's digits."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict, train_test_split

from cmtrack import evaluate
from correlation.data import Problem, Sample

VARIABLE = "FASHION_MNIST"
"""The environment variable that names the folder with the four files of Fashion-MNIST."""

PACKAGE = "dataset-fashion-mnist"
"""The Debian package that brings them."""

PACKAGED = Path("/usr/share/datasets/fashion-mnist")
"""Where that package puts them."""

FILES = {
    "train": ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"),
    "test": ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"),
}
ARTICLES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)
SELECTION = 0.25
UPPER = 4
"""Rows of a digit's eight that are used."""


class Pair(NamedTuple):
    """Two classes; the second one counts as positive. `make` draws a problem for a seed."""

    key: str
    names: tuple[str, str]
    make: Callable[[int], Problem]
    codes: tuple[int, int]


class ImageSet(NamedTuple):
    """Images to show, one per class, and the two problems.

    ``published`` says whether these are the source's own images, ``rule`` how the pairs were chosen, ``rows_used`` how
    many rows of pixels the machines see.
    """

    name: str
    rule: str
    shown: NDArray[np.float64]
    class_names: tuple[str, ...]
    easy: Pair
    hard: Pair
    published: bool
    rows_used: int


def image_set(*, fast: bool) -> ImageSet:
    """Fashion-MNIST from the folder that the environment names, else from Debian's package, else the digits."""
    folder = Path(os.environ.get(VARIABLE) or PACKAGED)
    return fashion(folder, fast=fast) if VARIABLE in os.environ or folder.is_dir() else digits()


def digits() -> ImageSet:
    """Upper halves of scikit-learn's 8 x 8 digits; whole ones are told apart without an error.

    A quarter of the images chooses the pairs and is not used again: the pairs with the smallest and the largest
    one-vs-one sPCC (mean of the two directions) of a logistic regression, out of fold.
    """
    given = load_digits()
    x, y = given.images[:, :UPPER].reshape(len(given.target), -1) / 16, given.target
    choose_x, x, choose_y, y = train_test_split(
        x, y, train_size=SELECTION, stratify=y, random_state=0
    )
    hard, easy = chosen_pairs(choose_x, choose_y)

    def pair(key: str, codes: tuple[int, int]) -> Pair:
        rows = np.isin(y, codes)
        own, positive = x[rows], (y[rows] == codes[1]).astype(np.int64)

        def make(seed: int) -> Problem:
            a, b, c, d = train_test_split(
                own, positive, test_size=0.5, stratify=positive, random_state=seed
            )
            return Problem(Sample(a, c), Sample(b, d))

        return Pair(key, (str(codes[0]), str(codes[1])), make, codes)

    rule = (
        f"Only the upper half of each image is used; whole digits are told apart without errors. A quarter of the "
        f"images ({len(choose_y)}) chooses the pairs and is not used again: a logistic regression scores it out of "
        f"fold, and the pair with the smallest one-vs-one sPCC (mean of its two directions) is the hard one, that "
        f"with the largest the easy one. The other {len(y)} images are the problems, half of a pair to train and half "
        f"to test, split anew for each repeat."
    )
    shown = np.stack([given.images[np.flatnonzero(given.target == k)[0]] for k in range(10)]) / 16
    names = tuple(map(str, range(10)))
    return ImageSet(
        "digits", rule, shown, names, pair("easy", easy), pair("hard", hard), False, rows_used=UPPER
    )


def chosen_pairs(
    x: NDArray[np.float64], y: NDArray[np.int64]
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The hardest and the easiest pair by the one-vs-one sPCC of a logistic regression's out-of-fold scores."""
    p = cross_val_predict(LogisticRegression(max_iter=2000), x, y, cv=5, method="predict_proba")
    matrix = evaluate(y, y_prob=p).spcc_matrix
    both = (matrix + matrix.T) / 2
    pairs = {(i, j): both[i, j] for i in range(len(both)) for j in range(i + 1, len(both))}
    return min(pairs, key=pairs.__getitem__), max(pairs, key=pairs.__getitem__)


def fashion(folder: Path, *, fast: bool) -> ImageSet:
    """The source's two pairs, bags and ankle boots (8, 9), and T-shirts and shirts (0, 6).

    The test images are the source's; the fast mode takes 200 of each kind.
    """
    (x, y), (test_x, test_y) = (read_part(folder, part) for part in ("train", "test"))

    def pair(key: str, codes: tuple[int, int]) -> Pair:
        def make(seed: int) -> Problem:
            most = 200 if fast else len(y)
            parts = [
                _two(images, labels, codes, most) for images, labels in ((x, y), (test_x, test_y))
            ]
            return Problem(*parts)

        return Pair(key, (ARTICLES[codes[0]], ARTICLES[codes[1]]), make, codes)

    shown = np.stack([x[np.flatnonzero(y == k)[0]] for k in range(10)]) / 255
    rule = "The source's own pairs, training images and test images; repeats differ in the seeds of the machines."
    pairs = pair("easy", (8, 9)), pair("hard", (0, 6))
    return ImageSet(
        "Fashion-MNIST", rule, shown, ARTICLES, *pairs, published=True, rows_used=shown.shape[1]
    )


def read_part(folder: Path, part: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, rows, columns) and labels (n,) of "train" or "test".

    Raises
    ------
    FileNotFoundError
        If a file is not in the folder.
    ValueError
        If a file is not what its name says, or there are not as many labels as images, or a class of the ten has none.
    """
    images, labels = (
        read_idx(folder / name, dimensions)
        for name, dimensions in zip(FILES[part], (3, 1), strict=True)
    )
    if len(images) != len(labels):
        raise ValueError(f"{folder}: {len(images)} {part} images have {len(labels)} labels")
    if set(np.unique(labels)) != set(range(10)):
        raise ValueError(
            f"{folder}: the {part} labels must be 0 to 9, each at least once, got {np.unique(labels)}"
        )
    return images, labels.astype(np.int64)


def read_idx(path: Path, dimensions: int) -> NDArray[np.uint8]:
    """A gzipped idx file of unsigned bytes.

    The format: two zero bytes, the type (8: unsigned byte), the number of dimensions, each dimension as a big-endian
    32-bit integer, then the bytes, the last dimension running fastest.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not gzipped, not idx, of another type or number of dimensions, or too short or too long.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing; the folder needs {[n for pair in FILES.values() for n in pair]}"
        )
    try:
        data = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file: {error}") from None
    header = 4 + 4 * dimensions
    if len(data) < header or data[:2] != b"\0\0":
        raise ValueError(f"{path} is not an idx file: it begins with {data[:4]!r}")
    if data[2] != 8 or data[3] != dimensions:
        raise ValueError(
            f"{path} must contain unsigned bytes (8) in {dimensions} dimensions, got {data[2]} in {data[3]}"
        )
    shape = struct.unpack(f">{dimensions}I", data[4:header])
    if len(data) - header != int(np.prod(shape, dtype=np.int64)):
        raise ValueError(
            f"{path} must contain {shape} bytes after its header, got {len(data) - header}"
        )
    return np.frombuffer(data, dtype=np.uint8, offset=header).reshape(shape)


def _two(
    images: NDArray[np.uint8], labels: NDArray[np.int64], codes: tuple[int, int], most: int
) -> Sample:
    rows = np.concatenate([np.flatnonzero(labels == code)[:most] for code in codes])
    x = images[rows].reshape(len(rows), -1) / 255.0
    return Sample(x, (labels[rows] == codes[1]).astype(np.int64))
