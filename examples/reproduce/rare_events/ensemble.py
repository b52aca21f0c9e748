"""Section 2.1.4: machines that vote, each by its accuracy and by how many words of a website it knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from cmtrack import evaluate
from rare_events.machine import BinaryText, FloatArray, TextMachine


class ExpertEnsemble(BinaryText):
    """Algorithms 1 and 2: a weighted share of votes.

    A machine's weight for a website is its accuracy on its own validation part times the share of the website's
    words that it has seen, |F(x) ∩ F_i| / |F(x)|. Algorithm 2 prints the union, which would exceed 1; the text says
    intersection. The thesis averages the share over ten runs because its stemming is random; counts of words are
    not, so that once is enough.

    Parameters
    ----------
    n_machines : int, default 10
    validation_share : float, default 0.2
        Part of the training rows that a machine is validated on; 0.2 as in section 2.1.1.
    C : float, default 1.0
    random_state : int, RandomState or None
    """

    def __init__(
        self,
        n_machines: int = 10,
        validation_share: float = 0.2,
        C: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.n_machines = n_machines
        self.validation_share = validation_share
        self.C = C
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> ExpertEnsemble:
        """Algorithm 1, on counts of words (n, n_words), dense or sparse."""
        X, codes = self._checked(X, y)
        rng = check_random_state(self.random_state)
        self.machines_: list[TextMachine] = []
        accuracies = []
        for _ in range(self.n_machines):
            seed = rng.randint(2**31 - 1)
            own, validation = train_test_split(
                np.arange(len(codes)),
                test_size=self.validation_share,
                stratify=codes,
                random_state=seed,
            )
            machine = clone(TextMachine(C=self.C)).fit(X[own], codes[own])
            judged = evaluate(codes[validation], machine.predict(X[validation]), labels=[0, 1])
            accuracies.append(judged.metrics["multiclass/accuracy"])
            self.machines_.append(machine)
        self.accuracies_ = np.array(accuracies)
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Algorithm 2: weighted shares of the votes for both classes, (n, 2)."""
        X = self._to_score(X)
        return self.weighted_votes(
            np.column_stack([machine.predict(X) for machine in self.machines_]), X
        )

    def weighted_votes(self, votes: Any, X: Any) -> FloatArray:
        """The last line of Algorithm 2; the mean of the machines' accuracies where a website has no known word."""
        weights = self.similarities(X) * self.accuracies_
        total = weights.sum(axis=1, keepdims=True)
        weights = np.where(total > 0, weights, self.accuracies_)
        p = (weights * votes).sum(axis=1) / weights.sum(axis=1)
        return np.column_stack((1 - p, p))

    def similarities(self, X: Any) -> FloatArray:
        """Share of each website's words that each machine has seen, (n, n_machines)."""
        known = np.zeros((X.shape[1], self.n_machines))
        for number, machine in enumerate(self.machines_):
            known[machine.weighting_.words, number] = 1.0
        present = (X != 0).astype(np.float64)
        own = np.asarray(present.sum(axis=1), dtype=np.float64).reshape(-1, 1)
        return np.asarray(present @ known) / np.maximum(own, 1.0)


def misread_votes(ensemble: ExpertEnsemble, X: Any, seed: int) -> FloatArray:
    """Scores of an ensemble whose machines each read a website's words in an order that is not theirs.

    Not a method of the thesis: what happens where every machine makes a TF-IDF matrix of its own and the columns of
    one are given to another.
    """
    rng = np.random.default_rng(seed)
    votes = [machine.predict(X[:, rng.permutation(X.shape[1])]) for machine in ensemble.machines_]
    return ensemble.weighted_votes(np.column_stack(votes), X)[:, 1]
