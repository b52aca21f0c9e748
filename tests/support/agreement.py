"""Checks that all statements about one evaluation agree: sentences, words, figures and numbers.

A function takes the outputs and returns the contradictions that it finds, one text for each. It reads what people read,
and compares it with the metrics. It does not use the code that chooses the words.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import numpy as np

from cmtrack import Evaluation
from cmtrack.plots import reliability_figure
from cmtrack.report import verdict

# -- probabilities ----------------------------------------------------------------------------------------------------

KINDS = (
    "over-confident",
    "under-confident",
    "the wrong way round",
    "too high",
    "too low",
    "miscalibrated",
)
QUIET = ("no miscalibration found", "unclear", "not tested", "all came true")
SIGNS, CERTAIN = "signs of miscalibration", "some 0% or 100% scores are wrong"

_SUBJECT = "probabilities of (?:the predicted classes|“.*?”)"
_OPENINGS = {
    rf"All {_SUBJECT} are 0% or 100% and came true": "all came true",
    rf"The {_SUBJECT} are not tested \(": "not tested",
    rf"Among the {_SUBJECT}, {CERTAIN}: ": CERTAIN,
    rf"The {_SUBJECT} are (negligibly .*?): the fault is real": "",
    rf"There are {SIGNS} in the {_SUBJECT}: ": SIGNS,
    rf"It is unclear whether the {_SUBJECT} are right: ": "unclear",
    rf"No miscalibration is found in the {_SUBJECT} ": "no miscalibration found",
    rf"The {_SUBJECT} are ({'|'.join(KINDS)})[ :]": "",
}
"""The start of a sentence on probabilities, and the word for it; without a word, the kind of fault is the word."""
_AVERAGE = "On average, the probability of "
_P = re.compile(r"(?:calibration|confidence) p (=|≤|<) ([\d.]+)")
_ROUNDS_TO_0 = 5e-4
"""An error up to this size has no digit that is not 0 with three decimals."""
_ERROR = re.compile(
    r"(?:alibration|onfidence) error:? (0 to )?([\d.]+(?:e−\d+)?)(?: \[([\d.]+), ([\d.]+)\])?"
)


class Words(NamedTuple):
    """The word for a sentence of a report, and the sentence."""

    word: str
    sentence: str


def judgement(evaluation: Evaluation) -> Words | None:
    """Return what the report says about the probabilities of the positive group, without their average."""
    return _words(verdict(evaluation), "calibration")


def confidence(evaluation: Evaluation) -> Words | None:
    """Return what the report says about the probabilities of the predicted classes."""
    return _words(verdict(evaluation), "confidence")


def average(evaluation: Evaluation) -> str:
    """Return what the report says about the mean probability of the positive group; empty if nothing."""
    return _average(verdict(evaluation))


def _average(sentences: list[str]) -> str:
    return "".join(_AVERAGE + text.partition(_AVERAGE)[2] for text in sentences if _AVERAGE in text)


def _words(sentences: list[str], section: str) -> Words | None:
    for text in sentences:
        sentence = text.partition(_AVERAGE)[0].strip()
        of_predictions = " probabilities of the predicted classes" in sentence
        if of_predictions != (section == "confidence"):
            continue
        for opening, word in _OPENINGS.items():
            match = re.match(opening, sentence)
            if match is None:
                continue
            others = re.search("; the others are (.*?): ", sentence)
            if word == CERTAIN and others is not None:
                word = f"{CERTAIN}, {others[1]}"
            return Words(word or match[1], sentence)
    return None


def contradictions(evaluation: Evaluation) -> list[str]:
    """Return the disagreements between the words, the curve, its band and the numbers of the probabilities."""
    made = []
    sentences = verdict(evaluation)
    for section, curve in (
        ("calibration", evaluation.calibration),
        ("confidence", evaluation.confidence_calibration),
    ):
        judged = _words(sentences, section)
        if judged is not None:
            made += [
                f"{section}: {text}" for text in _of_judgement(evaluation, section, judged, curve)
            ]
        elif f"{section}/error" in evaluation.metrics and evaluation.has_section(section):
            made.append(f"{section}: the report says nothing of these probabilities")
    return (
        made
        + [f"average: {text}" for text in _of_average(evaluation, sentences)]
        + [f"figure: {text}" for text in _of_figure(evaluation)]
    )


def outside(curve: Any) -> bool | None:
    """Return whether the drawn curve leaves the drawn band; None without a band."""
    shown = curve.drawn
    if shown.no_band:
        return None
    low, high = shown.band(curve.table.level)
    return bool(((shown.recalibrated < low - 1e-9) | (shown.recalibrated > high + 1e-9)).any())


def _margin(curve: Any) -> float:
    blocks = curve.table.blocks
    sums = np.array([blocks.total @ blocks.scores, blocks.positive.sum()]) / blocks.total.sum()
    return float(
        min(0.01, max(1 / blocks.total.sum(), *(min(share, 1 - share) for share in sums)) / 10)
    )


def _of_judgement(evaluation: Evaluation, section: str, judged: Words, curve: Any) -> list[str]:
    word, text = judged
    p, size = evaluation.metrics[f"{section}/pvalue"], evaluation.metrics[f"{section}/error"]
    ends, alpha = evaluation.intervals.get(f"{section}/error"), 1 - evaluation.confidence_level
    left, margin, made = outside(curve), _margin(curve), []
    claimed = word not in (*QUIET, SIGNS, CERTAIN) and not word.startswith("negligibly")
    plain = word.removeprefix("negligibly ").split(", ")
    if not all(part in (*KINDS, *QUIET, SIGNS, CERTAIN) for part in plain):
        made.append(f"an unknown word {word!r}")
    if math.isnan(p) != (word in ("not tested", "all came true")):
        made.append(f"{word!r} with p = {p}")
    if (p > alpha) != (word in ("no miscalibration found", "unclear")) and not math.isnan(p):
        made.append(f"{word!r} with p = {p}")
    if word == "no miscalibration found" and left:
        made.append("nothing is found, and the curve leaves its band")
    if word == "unclear" and ("leaves its band" in text) != bool(left):
        made.append("the sentence has another curve than the figure")
    if claimed and CERTAIN not in word:
        if left is False:
            test = curve.test
            if test is None or max(test.kuiper_pvalue, test.cox_pvalue) > alpha:
                made.append("it is claimed inside the band by one part of the test")
        mean = evaluation.intervals.get("prevalence/bias") if section == "calibration" else None
        if size < margin and (mean is None or (mean[0] <= margin and mean[1] >= -margin)):
            made.append(f"an error of {size} is claimed, below the margin {margin}")
    if "stays within its band" in text and left is not False:
        made.append("the curve is said to stay in its band")
    if CERTAIN in word:
        blocks = curve.table.blocks
        wrong = (
            blocks.positive[blocks.scores == 0].sum() + blocks.negative[blocks.scores == 1].sum()
        )
        if not wrong > 0:
            made.append("no certain score is wrong")
    if word.startswith("negligibly") and not (ends is not None and ends[1] <= margin):
        made.append(f"negligible, with an error of up to {ends}")
    if ("too small to matter" in text) and "percentage point" not in text:
        made.append("the margin is not named")
    made += _of_numbers(text, p, size, ends)
    return made


def _of_numbers(text: str, p: float, size: float, ends: tuple[float, float] | None) -> list[str]:
    made = []
    for sign, shown in _P.findall(text):
        right = {
            "=": abs(p - float(shown)) <= 5.01e-4 and p > 0.001,
            "≤": p == float(shown) == 0.001,
            "<": p < 0.001,
        }
        if not right[sign]:
            made.append(f"p is {p}, the sentence has {sign} {shown}")
    for below, shown, low, high in _ERROR.findall(text):
        value = shown.replace("−", "-")
        if below and not (
            size <= _ROUNDS_TO_0
            and ends is not None
            and math.isclose(float(value), ends[1], rel_tol=0.01, abs_tol=5e-4)
        ):
            made.append(f"the error is {size} {ends}, the sentence has 0 to {value}")
        if not below and (
            abs(float(value) - size) > 5.01e-4 or (size <= _ROUNDS_TO_0 and ends is not None)
        ):
            made.append(f"the error is {size} {ends}, the sentence has {value}")
        if low and not (
            ends is not None and low < high and float(low) <= float(value) <= float(high)
        ):
            made.append(f"the interval [{low}, {high}] has no width or not the value {value}")
    return made


def _of_average(evaluation: Evaluation, sentences: list[str]) -> list[str]:
    text, made = _average(sentences), []
    if not text:
        return []
    ends, curve = evaluation.intervals.get("prevalence/bias"), evaluation.calibration
    assert curve is not None
    claimed = "more than chance explains" in text
    if claimed == ("within chance" in text) and ends is not None and ends[0] < ends[1]:
        made.append("it is neither chance nor more than that, or both")
    if claimed and (ends is None or ends[0] <= 0 <= ends[1]):
        made.append(f"more than chance, with the interval {ends}")
    if "within chance" in text and "[" in text and ends is not None and not ends[0] <= 0 <= ends[1]:
        made.append(f"within chance, beside the interval {ends}")
    small = ends is not None and max(map(abs, ends)) <= _margin(curve)
    if claimed and small != ("too little to matter" in text):
        made.append(f"the size of {ends} is not told")
    judged = _words(sentences, "calibration")
    if judged is not None and judged.word == "no miscalibration found" and claimed and not small:
        made.append("nothing is found, and the mean is off by more than chance explains")
    if (
        judged is not None
        and ("too high" in judged.word or "too low" in judged.word)
        and not claimed
    ):
        made.append(f"{judged.word}, and within chance")
    return made


def _of_figure(evaluation: Evaluation) -> list[str]:
    figure, made = reliability_figure(evaluation), []
    if figure is None:
        return []
    curve, name = evaluation.calibration, "calibration/error"
    assert curve is not None
    size, ends = evaluation.metrics[name], evaluation.intervals.get(name)
    labels = [
        text.get_text()
        for legend in figure.findobj(lambda a: hasattr(a, "get_texts"))
        for text in legend.get_texts()
    ]
    (legend,) = [" ".join(label.split()) for label in labels if "calibration error" in label]
    if ("error 0 to " in legend) != (size <= _ROUNDS_TO_0 and ends is not None) or (
        size > _ROUNDS_TO_0 and f"error {size:.3f}" not in legend
    ):
        made.append(f"the error is {size} {ends}, the legend has {legend!r}")
    if any("band" in label for label in labels) != (outside(curve) is not None):
        made.append("the band of the words is not the figure's")
    return made
