"""PyTorch: ``EpochAccumulator`` for loops of your own, in one process or under ``torchrun``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from operator import add
from typing import Any, Unpack

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
    main_process,
    named,
    rank_and_world,
)

with needs("torch"):
    import torch

_BY_ROW = ("y_true", "y_prob", "logits", "y_pred", "sample_weight", "groups", "row_ids")
_SEGMENT = "segments "
"""Before the name of a column that divides the rows, among the parts of a batch."""
_DEVICE_BYTES = 2**28
"""Batches that are kept on a device; beyond this they are fetched before the epoch ends."""


class EpochAccumulator:
    """Accumulator of the predictions of an epoch, batch by batch, evaluated over all ranks.

    Where ``torch.distributed`` is initialised, ``compute`` and ``log`` are collective: every rank calls them, all get
    the evaluation of all rows, and rank 0 logs it. A rank that fails does not keep the others waiting.

    Rows are gathered where they are at most 32 MB in all (``predictions="auto"``, the default, or ``"labels"``), always
    (``predictions=True``), or never (``False``); where they are not, each rank evaluates its own rows and the
    evaluations are merged, and paired comparisons have no rows. Rows with ``groups`` or ``segments`` are gathered all
    the same: no rank sees all of them. Gathered rows come in the order of a ``DistributedSampler`` that does not
    shuffle. Such a sampler repeats a few rows where the ranks do not divide them evenly: ``row_ids`` leave each of them
    in once, and sort them.

    Rows with the label -100, PyTorch's ``ignore_index``, do not count, unless -100 is one of ``labels``.

    Parameters
    ----------
    **options
        Those of :class:`cmtrack.evaluation.spec.Spec`, ``labels``, ``calibration``, ``target``,
        ``run_id``, ``model_id``, ``prefix``, ``metrics``, ``predictions``,
        ``strict``, as in :func:`cmtrack.log_evaluation`. ``labels`` are by default 0 to K - 1; where they are names,
        ``y_true`` holds class numbers.

    Notes
    -----
    Cost: the rows of an epoch in memory, or their statistics where they are not gathered; ``log`` costs what
    :func:`cmtrack.log_evaluation` does.

    Examples
    --------
    >>> import torch
    >>> from cmtrack_integrations.torch import EpochAccumulator
    >>> batches = [([0, 1], [[2.0, 0.0], [0.0, 1.0]]), ([1, 0], [[0.5, 0.0], [1.0, 0.0]])]
    >>> judge = EpochAccumulator(labels=["cat", "dog"])
    >>> for y, logits in batches:
    ...     judge.update(torch.tensor(y), logits=torch.tensor(logits))
    >>> judge.compute().metrics["multiclass/accuracy"]
    0.75
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._hook = Hook(options)
        self._rows: dict[str, list[Any]] = {}
        self._on_device = 0  # bytes
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
        """Add the rows of a batch, from tensors on any device or arrays.

        Parameters
        ----------
        y_true : tensor of shape (n,), or one-hot (n, K)
        y_pred : tensor of shape (n,), optional
        y_prob : tensor of shape (n,) or (n, K), optional
            Probability of the second of two classes, or of each.
        logits : tensor of shape (n,) or (n, K), optional
            Instead of ``y_prob``; softmax, or the sigmoid of a single column, makes probabilities of them, in double
            precision.
        sample_weight, groups, row_ids : tensor of shape (n,), optional
        segments : mapping of name to tensor or list of n values, optional
            Columns of categories that divide the rows; also the other forms of :func:`cmtrack.evaluate`.
        """
        try:
            if logits is not None and y_prob is not None:
                raise ValueError("a batch must have y_prob or logits, got both")
            columns, divisions = ({}, ()) if segments is None else declared(segments)
            values_by_row = (y_true, y_prob, logits, y_pred, sample_weight, groups, row_ids)
            given = align_rows(
                dict(zip(_BY_ROW, values_by_row, strict=True)) | {"segments": columns}
            )
            columns = given.pop("segments")
            for name in ("y_prob", "logits"):
                if given[name] is not None:
                    given[name] = _with_row_axis(given[name], y_true)
            batch = {
                name: _batch_part(name, values)
                for name, values in given.items()
                if values is not None
            }
            batch |= _segment_parts(columns)
            divisions = tuple(tuple(map(str, division)) for division in divisions)
            lengths = {name: len(values) for name, values in batch.items()}
            if len(set(lengths.values())) > 1:
                raise ValueError(f"a batch must have one entry per row in each part, got {lengths}")
            if self._rows and set(self._rows) != set(batch):
                raise ValueError(
                    f"all batches must have the same parts, got {sorted(batch)}, not {sorted(self._rows)}"
                )
            if self._rows and self._divisions != divisions:
                raise ValueError(
                    f"all batches must have the same segments, got {divisions}, not {self._divisions}"
                )
            self._divisions = divisions
            for name, values in batch.items():
                self._rows.setdefault(name, []).append(values)
            self._on_device += sum(
                values.nbytes for values in batch.values() if isinstance(values, torch.Tensor)
            )
            if self._on_device > _DEVICE_BYTES:
                self._fetch()
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """Keep an error until the epoch is evaluated, so that the ranks stay in step; one rank raises if ``strict``.

        Raises
        ------
        Exception
            The error itself, if ``strict`` and there are no other ranks.
        """
        if self._hook.strict and rank_and_world()[1] == 1:
            raise error
        self._error = self._error or error

    def reset(self) -> None:
        """Discard the rows."""
        self._rows, self._on_device, self._divisions, self._error = {}, 0, (), None

    def compute(self) -> Evaluation | None:
        """The evaluation of the rows of all ranks; None where it failed, with a warning from rank 0.

        Raises
        ------
        Exception
            What went wrong, on every rank, if ``strict``.
        """
        try:
            return self._compute()
        except Exception:
            if not self._hook.strict and not main_process():
                return None
            with self._hook.guarded():
                raise
            return None

    def log(self, step: int | None = None) -> LoggedEvaluation | None:
        """Evaluate and log to ``run_id`` or the active run, from rank 0; then discard the rows.

        Returns
        -------
        LoggedEvaluation or None
            None on the other ranks, and where there is no evaluation.
        """
        evaluation = self.compute()
        self.reset()
        if evaluation is None or not main_process():
            return None
        with self._hook.guarded():
            self._hook.begin()
            return self._hook.log(evaluation, step=step)
        return None

    # -- over ranks ------------------------------------------------------------------------------------

    def _compute(self) -> Evaluation:
        own, labels, error = self._own()
        size = sum(int(values.nbytes) for values in own.values())
        divisions = self._divisions if own else ()
        whole = bool(divisions) or "groups" in own
        header = (
            len(own.get("y_true", ())),
            size,
            labels,
            own.get("row_ids"),
            divisions,
            whole,
            _sent(error),
        )
        counts, sizes, orders, ids, divided, together, errors = zip(*_gather(header), strict=True)
        _raise_first(errors)
        if not any(counts):
            raise ValueError(
                "there must be at least one row to evaluate, got none: update takes batches, and rows with the label "
                f"{PADDING} do not count"
            )
        labels = next(
            (
                order
                for count, order in zip(counts, orders, strict=True)
                if count and order is not None
            ),
            None,
        )
        if own.get("row_ids") is not None:
            own = _first_of_each(own, ids)
        wanted = self._hook.options.get("predictions", "auto")
        small = wanted in ("auto", "labels") and sum(sizes) <= MAX_ROWS_BYTES
        if len(counts) == 1 or wanted is True or small or any(together):  # the same on every rank
            return self._evaluated(
                _interleaved(_gather(own)), labels, next(filter(None, divided), ())
            )
        return self._merged(own, labels)

    def _own(self) -> tuple[dict[str, Any], Any, Exception | None]:
        """Rows of this rank, their labels, and errors."""
        if self._error is not None or not self._rows:
            return {}, None, self._error
        try:
            self._fetch()
            wanted = self._hook.options.get("labels")
            own = {name: np.concatenate(parts) for name, parts in self._rows.items()}
            counted = is_counted(own["y_true"], wanted)
            if not counted.all():
                own = {name: values[counted] for name, values in own.items()}
            own["y_true"], labels = named(
                own["y_true"], wanted, own.get("y_prob", own.get("logits"))
            )
            if "y_pred" in own:
                own["y_pred"] = named(own["y_pred"], wanted)[0]
            return own, labels, None
        except Exception as error:
            return {}, None, error

    def _fetch(self) -> None:
        """Replace the tensors of batches by arrays, in one transfer from each device."""
        runs = [
            (name, list(run))
            for name, parts in self._rows.items()
            for _, run in groupby(parts, _kind)
        ]
        arrays = _transferred([run for _, run in runs if isinstance(run[0], torch.Tensor)])
        rows: dict[str, list[Any]] = {name: [] for name in self._rows}
        for name, run in runs:
            if isinstance(run[0], torch.Tensor):
                array = next(arrays)
                rows[name].append(class_codes(array) if name == "y_true" else array)
            else:
                rows[name] += run
        self._rows = rows
        self._on_device = 0

    def _evaluated(
        self, rows: dict[str, Any], labels: Any, divisions: Divisions = ()
    ) -> Evaluation:
        columns = {name.removeprefix(_SEGMENT): rows[name] for name in rows if name not in _BY_ROW}
        given = {name: rows[name] for name in rows if name in _BY_ROW}
        if "logits" in given:  # only now, so that batches are kept and sent in single precision
            given["y_prob"] = probabilities(given.pop("logits")).numpy()
        if divisions:
            given["segments"] = columns, divisions
        return evaluate(**{**self._hook.evaluate_options, "labels": labels, **given})

    def _merged(self, own: dict[str, Any], labels: Any) -> Evaluation:
        part: Evaluation | None = None
        error: Exception | None = None
        try:
            if labels is None:
                raise ValueError(
                    "all ranks must have the same labels, got different ones: labels= names them"
                )
            if len(own.get("y_true", ())):
                part = replace(self._evaluated(own, labels), rows=None)
        except Exception as wrong:
            error = wrong
        parts, errors = zip(*_gather((part, _sent(error))), strict=True)
        _raise_first(errors)
        merged: Evaluation = reduce(add, [each for each in parts if each is not None])
        return merged


def probabilities(logits: Any) -> Any:
    """Probabilities of shape (n, K) by softmax, or (n,) by the sigmoid of a single column.

    Raises
    ------
    ValueError
        If the shape is another one.

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
    # In single precision the sigmoid is exactly 1 from a logit of 17, and rows beyond would be tied.
    tensor = _single_column(tensor.double())
    _check_logits(tensor)
    return torch.sigmoid(tensor) if tensor.ndim == 1 else torch.softmax(tensor, dim=1)


def _check_logits(logits: Any) -> None:
    if logits.ndim not in (1, 2):
        raise ValueError(f"logits must have shape (n,) or (n, K), got {tuple(logits.shape)}")


def _single_column(outputs: Any) -> Any:
    """Return outputs of shape (n, 1) in the shape (n,), others as they are."""
    return outputs[:, 0] if outputs.ndim == 2 and outputs.shape[1] == 1 else outputs


def _with_row_axis(outputs: Any, y_true: Any) -> Any:
    """Return the outputs of a batch with the axis of its rows, which ``squeeze`` removes from a single row."""
    if not isinstance(outputs, torch.Tensor):
        outputs = as_array(outputs)
    label_shape = np.shape(y_true)
    is_single_row = not label_shape or label_shape[0] == 1
    if is_single_row and len(outputs.shape) == 1 and outputs.shape[0] > 1:
        return outputs[None]
    return outputs


def _segment_parts(columns: Mapping[Any, Any]) -> dict[str, Any]:
    """A batch's segment columns as arrays."""
    read = (SegmentRows.read(name, _cpu(column)) for name, column in columns.items())
    return {f"{_SEGMENT}{rows.name}": rows.column for rows in read}


def _cpu(values: Any) -> Any:
    return np.atleast_1d(as_array(values)) if hasattr(values, "detach") else values


def _batch_part(name: str, values: Any) -> Any:
    """A copy of one part of a batch, at least 1-d: a tensor where it is on a device, else an array."""
    if isinstance(values, torch.Tensor) and values.device.type != "cpu":
        part = values.detach()
        is_half = part.dtype in (torch.float16, torch.bfloat16)
        part = part.float() if is_half else part.clone()  # the loop may overwrite the batch
        part = part if part.ndim else part[None]
    else:
        part = np.atleast_1d(
            np.array(as_array(class_codes(_cpu(values)) if name == "y_true" else values))
        )
    if name == "logits":
        _check_logits(part)
    return _single_column(part) if name in ("y_prob", "logits") else part


def _kind(part: Any) -> Any:
    """Device, type and width of a tensor, which those of one array share; None of an array."""
    return (part.device, part.dtype, part.shape[1:]) if isinstance(part, torch.Tensor) else None


def _transferred(runs: Sequence[Sequence[Any]]) -> Iterator[Any]:
    """An array of each run of tensors of one kind, in one transfer from each device: of their bytes."""
    shapes = [(sum(map(len, run)), *run[0].shape[1:]) for run in runs]
    sizes = [sum(tensor.nbytes for tensor in run) for run in runs]
    # each begins where any type may
    ends = np.cumsum([-(-size // 16) * 16 for size in sizes]).tolist()
    spans = [slice(end, end + size) for end, size in zip([0, *ends], sizes, strict=False)]
    fetched = {}
    for device, first in {run[0].device: run[0] for run in runs}.items():
        data = first.new_empty(ends[-1], dtype=torch.uint8)
        for run, shape, span in zip(runs, shapes, spans, strict=True):
            if run[0].device == device:
                torch.cat(run, out=data[span].view(run[0].dtype).view(shape))
        fetched[device] = data.cpu().numpy()
    for run, shape, span in zip(runs, shapes, spans, strict=True):
        kind = torch.empty(0, dtype=run[0].dtype).numpy().dtype
        yield fetched[run[0].device][span].view(kind).reshape(shape)


def _gather(value: Any) -> list[Any]:
    """The values of all ranks, on every rank."""
    world = rank_and_world()[1]
    if world == 1:
        return [value]
    values: list[Any] = [None] * world
    torch.distributed.all_gather_object(values, value)
    return values


def _sent(error: Exception | None) -> Exception | str | None:
    """The error in a form that can be sent to other ranks."""
    return (
        error if error is None or rank_and_world()[1] == 1 else f"{type(error).__name__}: {error}"
    )


def _raise_first(errors: Sequence[Any]) -> None:
    for rank, error in enumerate(errors):
        if isinstance(error, Exception):
            raise error
        if error is not None:
            raise RuntimeError(f"rank {rank}: {error}")


def _first_of_each(own: dict[str, Any], ids: Sequence[Any]) -> dict[str, Any]:
    """Mask of this rank's rows without duplicates in lower ranks or earlier rows."""
    seen: set[Any] = set()
    for lower in ids[: rank_and_world()[0]]:
        seen.update(() if lower is None else lower.tolist())
    kept = []
    for place, name in enumerate(own["row_ids"].tolist()):
        if name not in seen:
            seen.add(name)
            kept.append(place)
    return {name: np.asarray(values)[kept] for name, values in own.items()}


def _interleaved(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The rows of all ranks in one order: by id, or interleaved as by a distributed sampler."""
    parts = [part for part in parts if part and len(part["y_true"])]
    if any(set(part) != set(parts[0]) for part in parts):
        raise ValueError(
            f"all ranks must have the same parts, got {[sorted(part) for part in parts]}"
        )
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if "row_ids" in whole:
        order = np.argsort(whole["row_ids"], kind="stable")
    else:
        place = np.concatenate([np.arange(len(part["y_true"])) for part in parts])
        order = np.argsort(place, kind="stable")
    return {name: values[order] for name, values in whole.items()}
