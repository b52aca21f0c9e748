"""Sizes and repeats of the two modes."""

from __future__ import annotations

from correlation.data import CLASS_SIZES, SIZES
from study import Study


def repeats(study: Study) -> int:
    """Repeats with new data and new seeds."""
    return study.pick(fast=2, full=25)


def networks(study: Study) -> int:
    """Networks of one epoch."""
    return study.pick(fast=8, full=40)


def trees(study: Study) -> int:
    """In a forest."""
    return study.pick(fast=20, full=100)


def folds(study: Study) -> int:
    """Of out-of-fold scores, and of the SVM's sigmoid."""
    return study.pick(fast=3, full=5)


def sizes(study: Study) -> tuple[int, int]:
    """Samples of two classes: a fifth of the source's in the fast mode."""
    return study.pick(fast=(SIZES[0] // 5, SIZES[1] // 5), full=SIZES)


def class_sizes(study: Study) -> tuple[int, ...]:
    """Samples of three classes, likewise."""
    return study.pick(fast=tuple(size // 5 for size in CLASS_SIZES), full=CLASS_SIZES)


def of_images(study: Study, *, published: bool) -> tuple[int, int]:
    """Repeats and folds of the pairs of images; the source's own have 12,000 images for the SVM to be fitted on."""
    return (study.pick(fast=2, full=5), 3) if published else (repeats(study), folds(study))
