"""PyTorch: ``EpochAccumulator`` for custom training loops, in one process or under ``torchrun``.

If there are several ranks, they exchange no data before the epoch ends. At the end of the epoch,
every rank takes part in each ``_gather``, even if its own rows caused an error. Otherwise the other
ranks would wait forever. Errors are therefore sent to all ranks as values, and then raised on every
rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any, NamedTuple, Unpack

import numpy as np

from cmtrack.archive import MAX_ROWS_BYTES
from cmtrack.evaluation import Evaluation, evaluate
from cmtrack.evaluation.input_remarks import PADDING
from cmtrack.statistics.inputs import align_rows, as_array
from cmtrack.statistics.segment_values import Divisions, SegmentRows, declared
from cmtrack.tracking import LoggedEvaluation
from cmtrack_integrations._extras import needs
from cmtrack_integrations._hook import (
    Hook,
    Options,
    class_codes,
    is_counted,
    is_main_process,
    name_classes,
    rank_and_world,
)

with needs("torch"):
    import torch

_BY_ROW = ("y_true", "y_prob", "logits", "y_pred", "sample_weight", "groups", "row_ids")
_SEGMENT = "segments "
"""Prefix of the key under which a batch stores a segment column."""
_DEVICE_BYTES = 2**28
"""Size in bytes above which batches on a device are copied to the CPU during the epoch."""


class EpochAccumulator:
    """Accumulator that collects the predictions of all ranks during an epoch and evaluates them.

    If ``torch.distributed`` is initialised, ``compute`` and ``log`` are collective operations.
    Every rank must call them. Every rank receives the evaluation of all rows, and rank 0 logs this
    evaluation. If a rank fails, the other ranks do not wait for it.

    By default (``predictions="auto"``), and with ``predictions="labels"``, the rows of all ranks
    are gathered if their total size is at most 32 MB. The rows are always gathered with
    ``predictions=True``, and never with ``predictions=False``. If the rows are not gathered, each
    rank evaluates its own rows, and the evaluations are merged. A merged evaluation contains no
    rows, so it cannot be used in paired comparisons. Rows with ``groups`` or ``segments`` are
    always gathered, because a group or segment may have rows on several ranks.

    Gathered rows are in the order of a ``DistributedSampler`` that does not shuffle. This sampler
    repeats a few rows if the number of rows is not a multiple of the number of ranks. If you pass
    ``row_ids``, each row is evaluated only once, and the rows are sorted by id.

    Rows with the label -100, PyTorch's ``ignore_index``, are not evaluated unless -100 is one of
    ``labels``.

    Parameters
    ----------
    **options
        Options of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``run_id``, ``model_id``, ``prefix``, ``metrics``, ``predictions``,
        ``strict``, as in :func:`cmtrack.log_evaluation`. By default, ``labels`` are 0 to K - 1. If
        ``labels`` are names, ``y_true`` must contain class numbers.

    Notes
    -----
    Each rank keeps its own rows in memory until the epoch is evaluated. If the rows are gathered,
    every rank receives the rows of all ranks. ``log`` takes as long as
    :func:`cmtrack.log_evaluation`.

    Examples
    --------
    >>> import torch
    >>> from cmtrack_integrations.torch import EpochAccumulator
    >>> batches = [([0, 1], [[2.0, 0.0], [0.0, 1.0]]), ([1, 0], [[0.5, 0.0], [1.0, 0.0]])]
    >>> epoch = EpochAccumulator(labels=["cat", "dog"])
    >>> for y, logits in batches:
    ...     epoch.update(torch.tensor(y), logits=torch.tensor(logits))
    >>> epoch.compute().metrics["multiclass/accuracy"]
    0.75
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._hook = Hook(options)
        self._rows: dict[str, list[Any]] = {}
        self._bytes_on_device = 0
        self._divisions: Divisions = ()
        self._error: Exception | None = None

    def update(
        self,
        y_true: Any,
        y_pred: Any = None,
        *,
        y_prob: Any = None,
        logits: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        row_ids: Any = None,
        segments: Any = None,
    ) -> None:
        """Add the rows of a batch; tensors on any device and arrays are accepted.

        Parameters
        ----------
        y_true : tensor of shape (n,), or one-hot (n, K)
        y_pred : tensor of shape (n,), optional
        y_prob : tensor of shape (n,) or (n, K), optional
            Probabilities of all classes, or only of the second class if there are two classes.
        logits : tensor of shape (n,) or (n, K), optional
            Logits, which you can pass instead of ``y_prob``. Logits are converted to probabilities
            in double precision, by softmax or, for a single column, by the sigmoid function.
        sample_weight, groups, row_ids : tensor of shape (n,), optional
        segments : mapping of name to tensor or list of n values, optional
            Columns of categories that divide the rows, or any other form that
            :func:`cmtrack.evaluate` accepts.
        """
        columns = {
            "y_true": y_true,
            "y_prob": y_prob,
            "logits": logits,
            "y_pred": y_pred,
            "sample_weight": sample_weight,
            "groups": groups,
            "row_ids": row_ids,
        }
        try:
            batch, divisions = _read_batch(columns, segments)
            self._check_like_earlier(batch, divisions)
            self._divisions = divisions
            for name, values in batch.items():
                self._rows.setdefault(name, []).append(values)
                if isinstance(values, torch.Tensor):
                    self._bytes_on_device += values.nbytes
            if self._bytes_on_device > _DEVICE_BYTES:
                self._fetch()
        except Exception as error:
            self.fail(error)

    def _check_like_earlier(self, batch: Mapping[str, Any], divisions: Divisions) -> None:
        """Raise ValueError unless the batch contains the same parts as earlier batches."""
        if not self._rows:
            return
        if set(self._rows) != set(batch):
            raise ValueError(
                f"all batches must have the same parts, got {sorted(batch)}, not "
                f"{sorted(self._rows)}"
            )
        if self._divisions != divisions:
            raise ValueError(
                f"all batches must have the same segments, got {divisions}, not {self._divisions}"
            )

    def fail(self, error: Exception) -> None:
        """Store an error until the epoch is evaluated, so that the other ranks do not wait.

        If ``strict`` is set and there is only one rank, the error is raised at once.

        Raises
        ------
        Exception
            The given error, if ``strict`` is set and there are no other ranks.
        """
        if self._hook.strict and rank_and_world()[1] == 1:
            raise error
        self._error = self._error or error

    def reset(self) -> None:
        """Discard all rows collected so far."""
        self._rows = {}
        self._bytes_on_device = 0
        self._divisions = ()
        self._error = None

    def compute(self) -> Evaluation | None:
        """Return the evaluation of the rows of all ranks, or None if the evaluation failed.

        Rank 0 warns if the evaluation failed.

        Raises
        ------
        Exception
            The error of the evaluation, which is raised on every rank if ``strict`` is set.
        """
        try:
            return self._evaluate_ranks()
        except Exception:
            if not self._hook.strict and not is_main_process():
                return None
            with self._hook.guarded():
                raise
            return None

    def log(self, step: int | None = None) -> LoggedEvaluation | None:
        """Evaluate all rows, log the evaluation from rank 0, and discard the rows.

        Returns
        -------
        LoggedEvaluation or None
            None if the evaluation failed, and on every rank except rank 0.
        """
        evaluation = self.compute()
        self.reset()
        if evaluation is None or not is_main_process():
            return None
        with self._hook.guarded():
            self._hook.begin()
            return self._hook.log(evaluation, step=step)
        return None

    # ---------------------------------------------------------------------------- over ranks

    def _evaluate_ranks(self) -> Evaluation:
        rows, labels, error = self._rows_of_rank()
        header = _Header(
            n_rows=len(rows.get("y_true", ())),
            n_bytes=sum(int(values.nbytes) for values in rows.values()),
            labels=labels,
            row_ids=rows.get("row_ids"),
            divisions=self._divisions if rows else (),
            has_groups="groups" in rows,
            error=_as_sent(error),
        )
        headers: list[_Header] = _gather(header)
        _raise_first([rank.error for rank in headers])
        if not any(rank.n_rows for rank in headers):
            raise ValueError(
                "there must be at least one row to evaluate, got none: add batches with update; "
                f"rows with the label {PADDING} do not count"
            )
        orders = (rank.labels for rank in headers if rank.n_rows and rank.labels is not None)
        labels = next(orders, None)
        if rows.get("row_ids") is not None:
            rows = _drop_repeated(rows, [rank.row_ids for rank in headers])
        if self._sends_rows(headers):
            divisions = next((rank.divisions for rank in headers if rank.divisions), ())
            return self._evaluate_rows(_interleave(_gather(rows)), labels, divisions)
        return self._evaluate_merged(rows, labels)

    def _sends_rows(self, headers: Sequence[_Header]) -> bool:
        """Return whether ranks exchange rows, not statistics; all ranks get the same answer."""
        if len(headers) == 1:
            return True
        # A group or segment may have rows on several ranks.
        if any(rank.has_groups or rank.divisions for rank in headers):
            return True
        predictions = self._hook.options.get("predictions", "auto")
        # If the rows are larger, they would not be stored with the evaluation.
        is_small = sum(rank.n_bytes for rank in headers) <= MAX_ROWS_BYTES
        return predictions is True or (predictions in ("auto", "labels") and is_small)

    def _rows_of_rank(self) -> tuple[dict[str, Any], Any, Exception | None]:
        """Return the rows of this rank and their labels; if that fails, return the error."""
        if self._error is not None or not self._rows:
            return {}, None, self._error
        try:
            self._fetch()
            names = self._hook.options.get("labels")
            rows = {name: np.concatenate(parts) for name, parts in self._rows.items()}
            is_row = is_counted(rows["y_true"], names)
            if not is_row.all():
                rows = {name: values[is_row] for name, values in rows.items()}
            outputs = rows.get("y_prob", rows.get("logits"))
            rows["y_true"], labels = name_classes(rows["y_true"], names, outputs)
            if "y_pred" in rows:
                rows["y_pred"], _ = name_classes(rows["y_pred"], names)
            return rows, labels, None
        except Exception as error:
            return {}, None, error

    def _fetch(self) -> None:
        """Replace the tensors of all batches with arrays, using one transfer from each device."""
        runs = [
            (name, list(run))
            for name, parts in self._rows.items()
            for _, run in groupby(parts, _kind)
        ]
        arrays = _transfer([run for _, run in runs if isinstance(run[0], torch.Tensor)])
        rows: dict[str, list[Any]] = {name: [] for name in self._rows}
        for name, run in runs:
            if isinstance(run[0], torch.Tensor):
                array = next(arrays)
                rows[name].append(class_codes(array) if name == "y_true" else array)
            else:
                rows[name] += run
        self._rows = rows
        self._bytes_on_device = 0

    def _evaluate_rows(
        self, rows: dict[str, Any], labels: Any, divisions: Divisions = ()
    ) -> Evaluation:
        columns = {name.removeprefix(_SEGMENT): rows[name] for name in rows if name not in _BY_ROW}
        arguments = {name: rows[name] for name in rows if name in _BY_ROW}
        if "logits" in arguments:  # until now, batches stay in single precision
            arguments["y_prob"] = probabilities(arguments.pop("logits")).numpy()
        if divisions:
            arguments["segments"] = (columns, divisions)
        return evaluate(**{**self._hook.evaluate_options, "labels": labels, **arguments})

    def _evaluate_merged(self, rows: dict[str, Any], labels: Any) -> Evaluation:
        """Evaluate the rows of each rank, and merge the evaluations."""
        evaluation: Evaluation | None = None
        error: Exception | None = None
        try:
            if labels is None:
                raise ValueError(
                    "all ranks must have the same labels, got different ones: pass labels="
                )
            if len(rows.get("y_true", ())):
                evaluation = replace(self._evaluate_rows(rows, labels), rows=None)
        except Exception as failure:
            error = failure
        evaluations, errors = zip(*_gather((evaluation, _as_sent(error))), strict=True)
        _raise_first(errors)
        merged: Evaluation = reduce(add, [part for part in evaluations if part is not None])
        return merged


class _Header(NamedTuple):
    """Information that the ranks exchange before they exchange rows or statistics."""

    n_rows: int
    n_bytes: int
    labels: Any
    row_ids: Any
    divisions: Divisions
    has_groups: bool
    error: Exception | str | None


def probabilities(logits: Any) -> Any:
    """Convert logits to probabilities: use the sigmoid for a single column, otherwise softmax.

    Raises
    ------
    ValueError
        If the shape is neither (n,) nor (n, K).

    Examples
    --------
    >>> import torch
    >>> from cmtrack_integrations.torch import probabilities
    >>> probabilities(torch.tensor([[0.0, 0.0], [0.0, 2.0]]))
    tensor([[0.5000, 0.5000],
            [0.1192, 0.8808]], dtype=torch.float64)
    """
    tensor = torch.as_tensor(logits).detach()
    if tensor.device.type == "mps":  # Apple's devices have no float64
        tensor = tensor.cpu()
    # In single precision, the sigmoid of any logit above 17 is exactly 1, so rows would be tied.
    tensor = _single_column(tensor.double())
    _check_logits(tensor)
    return torch.sigmoid(tensor) if tensor.ndim == 1 else torch.softmax(tensor, dim=1)


def _check_logits(logits: Any) -> None:
    if logits.ndim not in (1, 2):
        raise ValueError(f"logits must have shape (n,) or (n, K), got {tuple(logits.shape)}")


def _single_column(outputs: Any) -> Any:
    """Convert outputs of shape (n, 1) to shape (n,), and return any other output unchanged."""
    return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs


def _with_row_axis(outputs: Any, y_true: Any) -> Any:
    """Return a batch's outputs, with an axis for the rows even if the batch has only one row.

    If a model calls ``squeeze``, this axis is missing from its output for a single row.
    """
    if not isinstance(outputs, torch.Tensor):
        outputs = as_array(outputs)
    label_shape = np.shape(y_true)
    is_single_row = not label_shape or label_shape[0] == 1
    if is_single_row and len(outputs.shape) == 1 and outputs.shape[0] > 1:
        return outputs[None]
    return outputs


def _read_batch(columns: Mapping[str, Any], segments: Any) -> tuple[dict[str, Any], Divisions]:
    """Check that all parts of a batch are equally long, and return the parts and the divisions."""
    if columns["logits"] is not None and columns["y_prob"] is not None:
        raise ValueError("a batch must have y_prob or logits, got both")
    segment_columns, divisions = ({}, ()) if segments is None else declared(segments)
    aligned = align_rows({**columns, "segments": segment_columns})
    segment_columns = aligned.pop("segments")
    for name in ("y_prob", "logits"):
        if aligned[name] is not None:
            aligned[name] = _with_row_axis(aligned[name], columns["y_true"])
    batch = {
        name: _batch_part(name, values) for name, values in aligned.items() if values is not None
    }
    for name, column in segment_columns.items():
        rows = SegmentRows.read(name, _as_cpu_array(column))
        batch[f"{_SEGMENT}{rows.name}"] = rows.column
    lengths = {name: len(values) for name, values in batch.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"a batch must have one entry per row in each part, got {lengths}")
    return batch, tuple(tuple(map(str, division)) for division in divisions)


def _as_cpu_array(values: Any) -> Any:
    """Convert a tensor to an array of at least one dimension; return other values unchanged."""
    return np.atleast_1d(as_array(values)) if hasattr(values, "detach") else values


def _batch_part(name: str, values: Any) -> Any:
    """Copy one part of a batch; return a tensor if the part is on a device, otherwise an array.

    The training loop may overwrite the batch, so its values are copied.
    """
    if isinstance(values, torch.Tensor) and values.device.type != "cpu":
        part = values.detach()
        is_half = part.dtype in (torch.float16, torch.bfloat16)
        part = part.float() if is_half else part.clone()
        part = part if part.ndim else part[None]
    elif name == "y_true":
        part = np.atleast_1d(np.array(as_array(class_codes(_as_cpu_array(values)))))
    else:
        part = np.atleast_1d(np.array(as_array(values)))
    if name == "logits":
        _check_logits(part)
    return _single_column(part) if name in ("y_prob", "logits") else part


def _kind(part: Any) -> Any:
    """Return the device, type and row shape of a tensor; None for any other value."""
    return (part.device, part.dtype, part.shape[1:]) if isinstance(part, torch.Tensor) else None


def _transfer(runs: Sequence[Sequence[Any]]) -> Iterator[Any]:
    """Yield one array for each sequence of similar tensors, using one transfer from each device.

    The tensors are transferred as bytes, so that one transfer can contain tensors of all types.
    """
    shapes = [(sum(map(len, run)), *run[0].shape[1:]) for run in runs]
    sizes = [sum(tensor.nbytes for tensor in run) for run in runs]
    # Each run begins at a multiple of 16 bytes, so that numbers of any type are aligned.
    ends = np.cumsum([-(-size // 16) * 16 for size in sizes]).tolist()
    spans = [slice(end, end + size) for end, size in zip([0, *ends], sizes, strict=False)]
    bytes_by_device = {}
    for device, first in {run[0].device: run[0] for run in runs}.items():
        data = first.new_empty(ends[-1], dtype=torch.uint8)
        for run, shape, span in zip(runs, shapes, spans, strict=True):
            if run[0].device == device:
                torch.cat(run, out=data[span].view(run[0].dtype).view(shape))
        bytes_by_device[device] = data.cpu().numpy()
    for run, shape, span in zip(runs, shapes, spans, strict=True):
        dtype = torch.empty(0, dtype=run[0].dtype).numpy().dtype
        yield bytes_by_device[run[0].device][span].view(dtype).reshape(shape)


def _gather(value: Any) -> list[Any]:
    """Return a list of the values from all ranks; every rank receives the same list."""
    _, n_ranks = rank_and_world()
    if n_ranks == 1:
        return [value]
    values: list[Any] = [None] * n_ranks
    torch.distributed.all_gather_object(values, value)
    return values


def _as_sent(error: Exception | None) -> Exception | str | None:
    """Return an error as text before sending it to other ranks; some errors cannot be pickled."""
    if error is None or rank_and_world()[1] == 1:
        return error
    return f"{type(error).__name__}: {error}"


def _raise_first(errors: Sequence[Any]) -> None:
    """Raise the error of the lowest rank on which an error occurred."""
    for rank, error in enumerate(errors):
        if isinstance(error, Exception):
            raise error
        if error is not None:
            raise RuntimeError(f"rank {rank}: {error}")


def _drop_repeated(rows: dict[str, Any], ids_by_rank: Sequence[Any]) -> dict[str, Any]:
    """Return this rank's rows, without rows whose id occurs in a lower rank or an earlier row.

    A distributed sampler repeats some rows so that all ranks receive the same number of rows.
    """
    seen: set[Any] = set()
    for ids in ids_by_rank[: rank_and_world()[0]]:
        if ids is not None:
            seen.update(ids.tolist())
    first_rows = []
    for row, row_id in enumerate(rows["row_ids"].tolist()):
        if row_id not in seen:
            seen.add(row_id)
            first_rows.append(row)
    return {name: np.asarray(values)[first_rows] for name, values in rows.items()}


def _interleave(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Merge the rows of all ranks by id, or in the order of a distributed sampler."""
    parts = [part for part in parts if part and len(part["y_true"])]
    if any(set(part) != set(parts[0]) for part in parts):
        raise ValueError(
            f"all ranks must have the same parts, got {[sorted(part) for part in parts]}"
        )
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    key = rows.get("row_ids")
    if key is None:
        key = np.concatenate([np.arange(len(part["y_true"])) for part in parts])
    order = np.argsort(key, kind="stable")
    return {name: values[order] for name, values in rows.items()}
