"""Tools of the speed benchmarks: interleaved repeats, peak memory in a fresh process, made-up predictions, tables.

Compare a time only with another time of the same run, because the two cores are shared and noisy. Every round calls
each action once, so a slow phase of the machine affects all of them. A ratio is the median over the rounds.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Action = Callable[[], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each round: elapsed time, and processor time of all threads of this process."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    def over(self, other: Times, clock: str = "wall") -> float:
        """Return how many times longer this takes than another action: the median over rounds that both took part in."""
        pairs = zip(getattr(self, clock), getattr(other, clock), strict=False)
        return float(np.median([ours / theirs for ours, theirs in pairs]))

    @property
    def median(self) -> float:
        """Return the median elapsed seconds."""
        return float(np.median(self.wall))


def interleaved(
    actions: Mapping[str, Action], repeats: int, patience: float = 60.0
) -> dict[str, Times]:
    """Time actions in turns.

    An action that has used `patience` seconds takes no part in further rounds, so a peer that is a thousand times slower
    costs minutes instead of hours. The table shows its number of rounds. Short actions are called several times per
    round, until they have used 20 ms.
    """
    rounds: dict[str, list[tuple[float, float]]] = {name: [] for name in actions}
    calls = dict.fromkeys(actions, 0)
    for _ in range(repeats):
        for name, action in actions.items():
            had = rounds[name]
            if had and sum(wall for wall, _ in had) > patience:
                continue
            gc.collect()
            if not calls[name]:
                calls[name] = _calls(action)
            start, start_cpu = time.perf_counter(), time.process_time()
            for _ in range(calls[name]):
                action()
            wall, cpu = time.perf_counter() - start, time.process_time() - start_cpu
            had.append((wall / calls[name], cpu / calls[name]))
            say(f"{name}: {had[-1][0] * 1e3:,.1f} ms, {had[-1][1] * 1e3:,.1f} ms of the processor")
    return {name: Times(*map(tuple, zip(*had, strict=True))) for name, had in rounds.items()}


def _calls(action: Action) -> int:
    start = time.perf_counter()
    action()
    took = time.perf_counter() - start
    return math.ceil(0.02 / took) if took < 0.02 else 1


def reading(*arrays: npt.NDArray[Any]) -> Action:
    """Return the floor: every array read once, by the faster of its maximum and its sum."""

    def sums() -> None:
        for array in arrays:
            array.sum()

    def maxima() -> None:
        for array in arrays:
            array.max()

    both = {
        name: interleaved({name: action}, 5)[name].median
        for name, action in (("s", sums), ("m", maxima))
    }
    return sums if both["s"] < both["m"] else maxima


def compared(
    times: Mapping[str, Times], what: Sequence[object], floor: str = "floor"
) -> list[tuple[object, ...]]:
    """Return rows of a table: the first action compared with each other one."""
    ours, *others = times
    rows = []
    for name in others:
        under, over = (
            (times[ours], times[name]) if name.startswith(floor) else (times[name], times[ours])
        )
        sign = "cmtrack / floor" if name.startswith(floor) else "faster"
        ratios = f"{shown(under.over(over))}×", f"{shown(under.over(over, 'cpu'))}×"
        of = f"{shown(times[ours].median * 1e3)} / {shown(times[name].median * 1e3)}"
        rows.append((*what, name, *ratios, sign, of, len(times[name].wall)))
    return rows


COMPARED = ("against", "wall", "processor", "", "cmtrack / the other, ms", "rounds")


def in_fresh_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a module's top-level function in a new interpreter."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_answer, args=(sender, function, arguments))
    child.start()
    sender.close()
    try:
        given = receiver.recv()
    except EOFError:
        given = MemoryError("the process ended without an answer, perhaps out of memory")
    child.join()
    if isinstance(given, Exception):
        raise given
    return given


def _answer(sender: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        given = function(*arguments)
    except Exception as error:
        given = RuntimeError(f"{type(error).__name__}: {error}")
    sender.send(given)


class Peak:
    """Largest memory in a ``with`` block above the memory that the process had before, in bytes (Linux only).

    It counts the resident pages of this process and of the processes that it started, such as a Java machine. The input
    must be in memory and touched. The allocator's free memory is released first, or the block could use it unnoticed.
    """

    bytes: int = 0

    def __enter__(self) -> Peak:
        gc.collect()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL("libc.so.6").malloc_trim(0)
        for process in family():
            with contextlib.suppress(OSError):
                Path(f"/proc/{process}/clear_refs").write_text("5")  # reset the peak
        self._before = sum(_memory(process, "VmRSS") for process in family())
        return self

    def __exit__(self, *_: object) -> None:
        self.bytes = max(0, sum(_memory(process, "VmHWM") for process in family()) - self._before)


def family() -> list[int]:
    """Return this process and all that it started, including their children."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
    found = [os.getpid()]
    for process in found:  # grows while it is read
        found += [child for child, parent in parents.items() if parent == process]
    return found


def _memory(process: int, field: str) -> int:
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024
    return 0


def labels_of(
    rows: int, classes: int, seed: int = 0
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return actual and predicted classes, of which seven in ten are correct."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    wrong = rng.random(rows) < 0.3
    return y, np.where(wrong, rng.integers(0, classes, rows), y)


def probabilities_of(
    y: npt.NDArray[np.int64], classes: int, dtype: npt.DTypeLike = np.float64, seed: int = 1
) -> npt.NDArray[Any]:
    """Return probabilities of each class, shape (n, K), made in blocks so that nothing is larger than the result."""
    rng = np.random.default_rng(seed)
    out = np.empty((len(y), classes), dtype)
    for rows in blocks(len(y), 1 << 16):
        logits = rng.normal(size=(rows.stop - rows.start, classes))
        logits[np.arange(len(logits)), y[rows]] += 1.5
        np.exp(logits, out=logits)
        out[rows] = logits / logits.sum(axis=1, keepdims=True)
    return out


def blocks(rows: int, size: int) -> Iterator[slice]:
    """Consecutive parts of rows."""
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def shown(value: float) -> str:
    """Format a number with three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}".rstrip(".")


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table."""
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print(
            "| "
            + " | ".join(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
            + " |"
        )
    print(flush=True)


def say(message: str) -> None:
    """Print progress, not into the tables."""
    print(f"  {message}", file=sys.stderr, flush=True)


def numbers(text: str) -> list[int]:
    """Read ``1000,1e6`` as whole numbers."""
    return [int(float(part)) for part in text.split(",") if part]
