"""Code that the callbacks share: options, the choice of the run, and error handling.

Start with :class:`Hook`. Each callback creates one hook. The callback calls the hook's ``begin``
when training starts, and its ``log`` with labels and predictions. Both calls are inside
``guarded``, so that an error in cmtrack does not stop the training.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np

from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.input_remarks import PADDING
from cmtrack.evaluation.spec import Options as _Shared
from cmtrack.grouping import Label
from cmtrack.metrics.own import own_metrics
from cmtrack.statistics.inputs import BoolArray
from cmtrack.tracking import LoggedEvaluation, log_evaluation
from cmtrack.tracking import names as run_names
from cmtrack.tracking._warn import tell
from cmtrack.tracking.store import tracking_store


class EvaluateOptions(_Shared, total=False):
    """Options of :func:`cmtrack.evaluate` that a hook accepts; predictions come from the hook."""

    labels: Sequence[Label] | None
    calibration: Any
    target: Any


class Options(EvaluateOptions, total=False):
    """Options of :func:`cmtrack.log_evaluation` that a hook accepts; the hook counts the steps."""

    run_id: str | None
    model_id: str | None
    prefix: str
    metrics: str | Sequence[str]
    predictions: bool | str
    on_existing: str
    dataset: str | None
    figures: str | bool | Sequence[str]
    strict: bool


class DataOptions(Options, total=False):
    """Options of a hook that receives a validation set, including columns of row values."""

    sample_weight: Any
    groups: Any
    row_ids: Any
    segments: Any


_BY_ROW = frozenset(DataOptions.__annotations__) - frozenset(Options.__annotations__)
_EVALUATE = frozenset(EvaluateOptions.__annotations__)


class Hook:
    """Hook that logs all evaluations of a training session to the same run.

    Parameters
    ----------
    options : mapping
        As in :class:`DataOptions` if ``by_row`` is True, otherwise as in :class:`Options`.
    by_row : bool, default False

    Attributes
    ----------
    logged : LoggedEvaluation or None
        Result of logging the most recent evaluation.

    Raises
    ------
    TypeError
        If an option does not exist.
    """

    def __init__(self, options: Any, *, by_row: bool = False) -> None:
        kind = DataOptions if by_row else Options
        known = frozenset(kind.__annotations__)
        unknown = sorted(set(options) - known)
        if unknown:
            raise TypeError(f"there is no option {unknown[0]!r}; the options are {sorted(known)}")
        run_names.check_prefix(options.get("prefix", ""))
        own_metrics(options.get("extra_metrics", ()))
        self.options: dict[str, Any] = dict(options)
        self.strict = bool(options.get("strict", False))
        self.run_id: str | None = options.get("run_id")
        self.tracking_uri: str | None = None
        self.logged: LoggedEvaluation | None = None

    @property
    def evaluate_options(self) -> dict[str, Any]:
        """The options that ``evaluate`` accepts."""
        return {name: value for name, value in self.options.items() if name in _EVALUATE}

    def begin(self, run_id: str | None = None, tracking_uri: str | None = None) -> None:
        """Remember the active run when training starts.

        The next training session may use a different run, or no run.

        Parameters
        ----------
        run_id : str, optional
            Id of the run to which the framework's logger logs; by default the active run.
        tracking_uri : str, optional
            URI of the tracking store to which the framework's logger logs.
        """
        self.logged = None
        self.run_id = self.options.get("run_id")
        self.tracking_uri = None
        if self.run_id is not None:
            return
        if run_id is None:
            self.run_id = _active_run()
        else:
            self.run_id = run_id
            self.tracking_uri = tracking_uri

    def follow(self) -> None:
        """Choose the run for a log call outside training: the active run or the last used run."""
        if self.options.get("run_id") is None:
            self.run_id = _active_run() or self.run_id

    def log(
        self, evaluation_or_y_true: Any, *, step: int | None = None, **arguments: Any
    ) -> LoggedEvaluation:
        """Log an evaluation, or labels with ``y_pred`` or ``y_prob``, to the run used for training.

        If a hook option and one of ``arguments`` have the same name, the argument is used.
        """
        options = self.options
        if isinstance(evaluation_or_y_true, Evaluation):
            # An evaluation already has its options, and log_evaluation does not accept them.
            options = {
                name: value
                for name, value in options.items()
                if name not in _EVALUATE and name not in _BY_ROW
            }
        arguments = {**options, **arguments, "run_id": self.run_id, "step": step}
        from mlflow import get_tracking_uri

        is_current = self.tracking_uri is None or self.tracking_uri == get_tracking_uri()
        with nullcontext() if is_current else tracking_store(self.tracking_uri):
            self.logged = log_evaluation(evaluation_or_y_true, **arguments)
        self.run_id = self.logged.run_id or self.run_id
        return self.logged

    def tag(self, name: str, text: str) -> None:
        """Set the run's tag ``cmtrack.<name>``."""
        logged = self.logged
        if logged is None or logged.status != "completed" or logged.run_id is None:
            return
        from mlflow import MlflowClient

        with self.guarded("the evaluation was logged, but one of its tags was not"):
            MlflowClient(self.tracking_uri).set_tag(
                logged.run_id, run_names.tag(name, self.options.get("prefix", "")), text
            )

    @contextmanager
    def guarded(self, what: str = "the evaluation failed") -> Iterator[None]:
        """Turn errors inside the block into warnings, unless the option ``strict`` is set."""
        try:
            yield
        except Exception as error:
            if self.strict:
                raise
            tell(f"{what}: {error}")


class Logging:
    """Base class of callbacks that log evaluations through a hook."""

    _hook: Hook

    @property
    def logged(self) -> LoggedEvaluation | None:
        """Result of logging the most recent evaluation; None if nothing was logged."""
        return self._hook.logged


def rank_and_world() -> tuple[int, int]:
    """Return this process's rank and the number of ranks; (0, 1) without ``torch.distributed``."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return 0, 1
    return int(distributed.get_rank()), int(distributed.get_world_size())


def is_main_process() -> bool:
    """Return whether this process logs evaluations: True for rank 0, and for a single process."""
    return rank_and_world()[0] == 0


def check_every(every: int | None, what: str = "every") -> int | None:
    """Return ``every`` after checking that it is None or a whole number of at least 1.

    Raises
    ------
    ValueError
        If the period is not a whole number of at least 1.
    """
    if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
        raise ValueError(f"{what} must be a whole number of at least 1, or None, got {every!r}")
    return every


# ----------------------------------------------- labels of models that count their classes from 0


def class_codes(y: Any) -> Any:
    """Convert numbers, a single column, one-hot rows or whole floats to class numbers (n,).

    All other values are returned unchanged, so that ``evaluate`` can check them.

    Raises
    ------
    ValueError
        If a row is neither a label nor one-hot.
    """
    array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim == 2:
        if not (np.isin(array, (0, 1)).all() and (array.sum(axis=1) == 1).all()):
            raise ValueError(
                f"y_true must be labels or one-hot rows, got an array of shape {array.shape}"
            )
        return array.argmax(axis=1)
    if array.ndim != 1:
        return y
    if array.dtype.kind in "iub":
        return array.astype(np.int64)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return y
    # Some frameworks store class numbers as floats.
    if array.dtype.kind == "f" and (array == array.astype(np.int64)).all():
        return array.astype(np.int64)
    return y


def is_counted(y: Any, labels: Sequence[Label] | None) -> BoolArray:
    """Return a mask of the rows to evaluate: all rows except rows with PyTorch's label -100.

    If -100 is one of ``labels``, it is a class, and rows with this label are also evaluated.
    """
    array = np.asarray(y)
    is_class = labels is not None and PADDING in list(labels)
    if is_class or array.dtype.kind not in "iuf":
        return np.ones(len(array), dtype=np.bool_)
    counted: BoolArray = array != PADDING
    return counted


def name_classes(
    y: Any, labels: Sequence[Label] | None, y_prob: Any = None
) -> tuple[Any, Sequence[Label] | None]:
    """Return the row labels and all class labels for a model whose classes are numbered 0 to K - 1.

    Parameters
    ----------
    y : array-like of shape (n,)
    labels : sequence of length K, optional
        Names of the classes, in the order of the model's outputs. Whole numbers in ``y`` are
        positions in ``labels``, unless the labels are whole numbers. If ``y_prob`` contains K
        classes, the labels are 0 to K - 1 by default.
    y_prob : ndarray of shape (n,) or (n, K), optional
    """
    codes = class_codes(y)
    if getattr(codes, "dtype", None) is None or codes.dtype.kind != "i":
        return codes, labels
    if labels is None:
        return codes, _numbers_of_outputs(codes, y_prob)
    if any(isinstance(label, (int, np.integer)) for label in labels):
        return codes, labels
    if len(codes) and (codes.min() < 0 or codes.max() >= len(labels)):
        raise ValueError(
            f"y_true must be in 0 … {len(labels) - 1} for {len(labels)} labels, got {codes.max()}"
        )
    # If labels are sequences, NumPy would convert their list to a two-dimensional array.
    names = np.empty(len(labels), dtype=object)
    names[:] = list(labels)
    return names[codes.astype(np.int64)], labels


def _numbers_of_outputs(codes: Any, y_prob: Any) -> list[Label] | None:
    """Return the class numbers 0 to K - 1 for a model with K outputs; None if K is unknown."""
    if y_prob is None:
        return None
    shape = np.shape(y_prob)
    n_classes = 2  # a single column is the probability of class 1
    if len(shape) == 2 and shape[1] > 1:
        n_classes = shape[1]
    if len(codes) and (codes.min() < 0 or codes.max() >= n_classes):
        return None
    return list(range(n_classes))


def _active_run() -> str | None:
    import mlflow

    active = mlflow.active_run()
    return None if active is None else str(active.info.run_id)
