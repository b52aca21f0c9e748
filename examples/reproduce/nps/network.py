"""The convolutional network of Table A6, as a scikit-learn classifier. It needs PyTorch: the extra ``torch``."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

INSTALL = "pip install '.[torch]'"


def has_torch() -> bool:
    """Whether PyTorch is installed."""
    return find_spec("torch") is not None


class ConvolutionalClassifier(ClassifierMixin, BaseEstimator):
    """One convolution over the features in their order, ReLU, the largest of each pool, and a softmax.

    Parameters
    ----------
    filters : int, default 32
        The source does not say how many.
    kernel_size, pool_size, epochs, batch_size : int
        Table A6.
    learning_rate : float, default 0.001
        Of Adam; both are Keras' defaults, the source does not say.
    random_state : int, default 0

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    network_ : torch.nn.Module
    """

    def __init__(
        self,
        filters: int = 32,
        kernel_size: int = 3,
        pool_size: int = 4,
        epochs: int = 100,
        batch_size: int = 128,
        learning_rate: float = 0.001,
        random_state: int = 0,
    ) -> None:
        self.filters = filters
        self.kernel_size = kernel_size
        self.pool_size = pool_size
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike) -> ConvolutionalClassifier:
        """Minimise the cross-entropy by Adam over all epochs.

        Raises
        ------
        ImportError
            If PyTorch is not installed.
        ValueError
            If there are too few features for one pool.
        """
        torch = _torch()
        X, y = validate_data(self, X, y, dtype=np.float32)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        pools = (X.shape[1] - self.kernel_size + 1) // self.pool_size
        if pools < 1:
            least = self.kernel_size + self.pool_size - 1
            raise ValueError(f"kernel and pool need at least {least} features, got {X.shape[1]}")
        inputs, targets = torch.from_numpy(X)[:, None, :], torch.from_numpy(codes)
        threads = torch.get_num_threads()
        # the network is so small that more threads only wait for each other
        torch.set_num_threads(1)
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(self.random_state)
                self.network_ = torch.nn.Sequential(
                    torch.nn.Conv1d(1, self.filters, self.kernel_size),
                    torch.nn.ReLU(),
                    torch.nn.MaxPool1d(self.pool_size),
                    torch.nn.Flatten(),
                    torch.nn.Linear(self.filters * pools, len(self.classes_)),
                )
                optimizer = torch.optim.Adam(self.network_.parameters(), lr=self.learning_rate)
                loss = torch.nn.CrossEntropyLoss()
                for _ in range(self.epochs):
                    for rows in torch.randperm(len(inputs)).split(self.batch_size):
                        optimizer.zero_grad()
                        loss(self.network_(inputs[rows]), targets[rows]).backward()
                        optimizer.step()
        finally:
            torch.set_num_threads(threads)
        return self

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probabilities, shape (n, K)."""
        check_is_fitted(self)
        torch = _torch()
        X = validate_data(self, X, dtype=np.float32, reset=False)
        with torch.no_grad():
            logits = self.network_(torch.from_numpy(X)[:, None, :]).double()
        return np.asarray(torch.softmax(logits, dim=1).numpy())

    def predict(self, X: ArrayLike) -> np.ndarray:
        """The most probable class."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        raise ImportError(f"the convolutional network needs PyTorch: {INSTALL}") from None
    return torch
