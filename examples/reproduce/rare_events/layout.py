"""How many websites are drawn for what: the thesis' layout, and a small one for a look at the whole."""

from __future__ import annotations

from dataclasses import dataclass

from rare_events import published
from rare_events.machine import POSITIVE_WEIGHTS
from rare_events.websites import Web, Websites

TARGET = 29_712
"""Not printed in the thesis; it follows from every published bias (see ``audit.target_size``)."""

_WEB, _TARGET, _HELD_OUT, _TRAINING = range(4)  # streams of random numbers


@dataclass(frozen=True)
class Layout:
    """Sizes of a study.

    Attributes
    ----------
    web : Web
    positives, negatives : int
        Of the target.
    held_positives, held_negatives : int
        Labelled websites that no machine is trained on.
    repeats : dict of str to int
        Training sets by method.
    machines : dict of str to int
        In a bootstrap and in an ensemble.
    weights : tuple of float
        Of the positive class.
    folds : int
        Of out-of-fold scores.
    draws : int
        Of everything, to count how often intervals contain the truth.
    """

    web: Web
    positives: int
    negatives: int
    held_positives: int
    held_negatives: int
    repeats: dict[str, int]
    machines: dict[str, int]
    weights: tuple[float, ...]
    folds: int
    draws: int

    def target(self) -> Websites:
        """The one target that all methods are judged on.

        A target with so few platforms can be easy or hard by chance; number 1 is neither.
        """
        return self.web.draw(self.positives, self.negatives, [_TARGET, 1])

    def held_out(self) -> Websites:
        """Labelled websites beside the training sets and the target."""
        return self.web.draw(self.held_positives, self.held_negatives, [_HELD_OUT, 0])

    def training(self, method: str, repeat: int) -> Websites:
        """A method's training set; methods of one size share it."""
        negatives = published.TRAINED_NEGATIVES[method]
        return self.web.draw(published.TRAINED_POSITIVES, negatives, [_TRAINING, negatives, repeat])


_LEFT_POSITIVES = published.ALL_POSITIVES - published.TRAINED_POSITIVES - published.ACTUAL_POSITIVES

FULL = Layout(
    web=Web(),
    positives=published.ACTUAL_POSITIVES,
    negatives=TARGET - published.ACTUAL_POSITIVES,
    held_positives=_LEFT_POSITIVES,
    held_negatives=20_000,
    repeats=published.REPEATS | {"bootstrap": 3},
    machines=published.MACHINES,
    weights=POSITIVE_WEIGHTS,
    folds=10,
    draws=200,
)

FAST = Layout(
    web=Web(n_words=6000, platform_words=400),
    positives=14,
    negatives=5986,
    held_positives=_LEFT_POSITIVES,
    held_negatives=3000,
    repeats={"state of the art": 2, "class weights": 2, "bootstrap": 2, "ensemble": 2},
    machines={"bootstrap": 20, "ensemble": 4},
    weights=(POSITIVE_WEIGHTS[0], POSITIVE_WEIGHTS[9], POSITIVE_WEIGHTS[-1]),
    folds=3,
    draws=4,
)
