"""An evaluation in plain words: numbers as people read them, and the sentences of a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.evaluation import Evaluation
from cmtrack.families.result import FamilyEvaluation
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.names import encode_label
from cmtrack.names import quoted

SHORT = 60
MISMATCHES = "IM: right group, wrong class. Shown twice (row and column): do not add them."
_SOURCES = (
    "the number of scored samples: scoring more samples",
    "the number of labelled samples of {positive}: labelling more of them",
    "the number of labelled samples of {negative}: labelling more of them",
)


def number(value: float, ends: Interval | None = None) -> str:
    """A number with as many digits as its interval makes sensible; "undefined" for NaN."""
    if math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if float(value).is_integer() and abs(value) >= 2:
        return f"{value:,.0f}".replace("-", "−")
    if abs(value) >= 1000:
        return f"{value:,.0f}".replace("-", "−")
    if 0 < abs(value) < 5e-4:
        return f"{value:.2g}".replace("-", "−")
    return f"{value:.{_places(value, ends)}f}".replace("-", "−")


def count(value: float) -> str:
    """A number of samples: whole, or with one decimal where it is not."""
    if math.isnan(value):
        return "undefined"
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def interval(value: float, ends: Interval | None) -> str:
    """``[low, high]``, or nothing where there is no interval."""
    if ends is None or not all(map(math.isfinite, ends)):
        return ""
    places = _places(value, ends)
    low, high = (f"{end:.{places}f}".replace("-", "−") for end in ends)
    return f"[{low}, {high}]"


def with_interval(value: float, ends: Interval | None) -> str:
    """``0.712 [0.653, 0.766]``."""
    return f"{number(value, ends)} {interval(value, ends)}".rstrip()


def percent(share: float) -> str:
    """A share in per cent, with more digits close to 0 and 100 %."""
    if math.isnan(share):
        return "undefined"
    edge = min(share, 1 - share)
    return f"{100 * share:.{0 if edge == 0 else 1 if edge >= 0.001 else 3}f} %"


def percent_with_interval(share: float, ends: Interval | None) -> str:
    """``79.9 % [73.6, 85.0]``: one unit for the value and its interval."""
    if ends is None or not all(map(math.isfinite, (share, *ends))):
        return percent(share)
    places = max(1, _places(share, ends) - 2)
    low, high = (f"{100 * end:.{places}f}" for end in ends)
    return f"{100 * share:.{places}f} % [{low}, {high}]"


def named(label: object, most: int = SHORT) -> str:
    """A label in a sentence, quoted."""
    return quoted(short(label, most))


def listed(names: Sequence[str], most: int = 3) -> str:
    """``“a”, “b” and “c”``, of many names the first ``most`` and how many more there are."""
    if len(names) > most:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)


def short(label: object, most: int = SHORT) -> str:
    """A label on one line, cut in its middle where it is long."""
    text = " ".join(str(label).split()) or "(empty)"
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def counted(n: float, noun: str) -> str:
    """``1 sample``, ``1,200 samples``; fractional weights keep a decimal."""
    return f"{count(n)} {noun}" if n == 1 else f"{count(n)} {noun}{'es' if noun.endswith('s') else 's'}"


def samples(evaluation: BaseEvaluation) -> str:
    """How many samples, or documents, were evaluated, and their weight where it is another number."""
    rows = evaluation.statistics.digest.rows
    weight = evaluation.n_samples
    if isinstance(evaluation, Evaluation) and evaluation.none is not None:
        return f"{counted(weight, 'span')} in {counted(rows, 'document')}"
    noun = "document" if isinstance(evaluation, FamilyEvaluation) else "sample"
    return counted(rows, noun) + ("" if rows == weight else f" (weight {count(weight)})")


def verdict(evaluation: Evaluation) -> list[str]:
    """What a reader who did not run the model should know first, in sentences made from the numbers."""
    parts = {
        _overall: "multiclass" if evaluation.none is None else "spans", _classes: "class", _confusion: "multiclass",
        _steps: "reduced", _positive_group: "binary", _probabilities: "prevalence", _prevalence: "prevalence",
    }  # fmt: skip
    told = [part for part, section in parts.items() if evaluation.has_section(section)]
    return [sentence for part in told for sentence in part(evaluation)]


def confusions(evaluation: Evaluation) -> list[tuple[Label, Label, float, float]]:
    """For each class with errors: (actual, most frequent wrong prediction, count, share of the actual class)."""
    counts = evaluation.confusion_matrix.counts.astype(np.float64)
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    taken = wrong.argmax(axis=1)
    rows = []
    for actual, predicted in enumerate(taken):
        count = wrong[actual, predicted]
        if count > 0:
            labels = evaluation.labels
            rows.append((labels[actual], labels[predicted], float(count), float(count / counts[actual].sum())))
    return rows


def _places(value: float, ends: Interval | None) -> int:
    if ends is None or not all(map(math.isfinite, ends)):
        return 3
    width = ends[1] - ends[0]
    return 3 if width <= 0 else min(7, max(3, 1 - math.floor(math.log10(width))))


def _level(evaluation: Evaluation) -> str:
    return f"{100 * evaluation.confidence_level:g} % interval"


def _overall_spans(evaluation: Evaluation) -> list[str]:
    m, ends = evaluation.metrics, evaluation.intervals
    counts = evaluation.confusion_matrix.counts
    right = int(counts.trace())
    last = evaluation.labels.index(evaluation.none)
    actual, predicted = (int(counts.sum() - counts.sum(axis=axis)[last]) for axis in (1, 0))
    precision, recall, f1, macro = (
        with_interval(m[f"spans/{name}"], ends.get(f"spans/{name}"))
        for name in ("precision_micro", "recall_micro", "f1_micro", "f1_macro")
    )
    return [
        f"Of {counted(actual, 'actual span')}, {count(right)} are found with the right label (recall {recall}); of "
        f"{counted(predicted, 'predicted span')}, {count(right)} are right (precision {precision}).",
        f"F1 is {f1} over all spans, and {macro} on average over {counted(len(evaluation.classes), 'label')}.",
    ]


def _overall(evaluation: Evaluation) -> list[str]:
    if evaluation.none is not None:
        return _overall_spans(evaluation)
    m, ends = evaluation.metrics, evaluation.intervals
    accuracy, reach = m["multiclass/accuracy"], ends.get("multiclass/accuracy")
    totals = evaluation.confusion_matrix.counts.sum(axis=1)
    largest = int(totals.argmax())
    baseline = float(totals[largest]) / evaluation.n_samples
    most = named(evaluation.labels[largest])
    if reach is not None and reach[0] > baseline:
        comparison = "clearly better than"
    elif reach is not None and reach[1] < baseline:
        comparison = "clearly worse than"
    else:
        comparison = "not clearly different from"
    out = [
        f"On {samples(evaluation)} of {counted(len(evaluation.labels), 'class')} the accuracy is "
        f"{percent_with_interval(accuracy, reach)} ({_level(evaluation)}). This is {comparison} always predicting the "
        f"most frequent class, {most} ({percent(baseline)})."
    ]
    mcc = m["multiclass/matthews_corrcoef"]
    if math.isnan(mcc):
        out.append(f"The Matthews correlation is undefined: {evaluation.undefined['multiclass/matthews_corrcoef']}.")
    else:
        shown = with_interval(mcc, ends.get("multiclass/matthews_corrcoef"))
        out.append(f"The Matthews correlation is {shown} (0: guessing, 1: perfect).")
    return out


def _classes(evaluation: Evaluation) -> list[str]:
    m = evaluation.metrics
    present = [label for label in evaluation.classes if m[f"class/{encode_label(label)}/support"] > 0]
    known = [(m[f"class/{encode_label(label)}/f1"], label) for label in present]
    known = [(f1, label) for f1, label in known if math.isfinite(f1)]
    if len(known) < 2:
        return []

    top, bottom = max(f1 for f1, _ in known), min(f1 for f1, _ in known)
    if top == bottom:
        return [f"All classes have the same F1 ({number(top)})."]
    best, worst = (_with_f1(evaluation, [label for f1, label in known if f1 == end], end) for end in (top, bottom))
    return [f"Best class by F1: {best}. Worst: {worst}."]


def _with_f1(evaluation: Evaluation, labels: Sequence[Label], f1: float) -> str:
    """``“6” (F1 0.644, n = 35)``, or ``“2”, “3” and “4” (F1 0)``."""
    size = ""
    if len(labels) == 1:
        size = f", n = {count(evaluation.metrics[f'class/{encode_label(labels[0])}/support'])}"
    return f"{listed([named(label) for label in labels])} (F1 {number(f1) if f1 else '0'}{size})"


def _confusion(evaluation: Evaluation) -> list[str]:
    rows = confusions(evaluation)
    if not rows:
        return ["There are no errors on these samples."]
    actual, predicted, n, share = max(rows, key=lambda row: row[2])
    if evaluation.none is not None and evaluation.none in (actual, predicted):
        if actual == evaluation.none:
            return [f"Most frequent error: {counted(n, 'span')} predicted as {named(predicted)} where there is none."]
        return [f"Most frequent error: {counted(n, 'span')} of class {named(actual)} missed ({percent(share)})."]
    return [
        f"Most frequent confusion: {counted(n, 'sample')} of class {named(actual)} {'was' if n == 1 else 'were'} "
        f"predicted as {named(predicted)} ({percent(share)} of the class)."
    ]


def _steps(evaluation: Evaluation) -> list[str]:
    m, ends, out = evaluation.metrics, evaluation.intervals, []
    for step in evaluation.reduced:
        prefix = f"reduced/{encode_label(step.name)}"
        accuracy, rate = m[f"{prefix}/accuracy"], m[f"{prefix}/mismatch_rate"]
        groups = listed([named(g, 30) for g in step.labels], 6)
        text = (
            f"Grouped as {named(step.name)} ({groups}), "
            f"{percent_with_interval(accuracy, ends.get(f'{prefix}/accuracy'))} are correct"
        )
        if rate > 0:
            text += f"; another {percent(rate)} are in the right group but the wrong class, which does not count"
        out.append(text + ".")
    return out


def _positive_group(evaluation: Evaluation) -> list[str]:
    if evaluation.positive is None:
        return []
    m, ends = evaluation.metrics, evaluation.intervals
    name = named(evaluation.positive)
    recall, precision = (percent_with_interval(m[n], ends.get(n)) for n in ("binary/recall", "binary/precision"))
    out = [f"For {name}, recall is {recall} and precision {precision}."]
    auc = m.get("binary/roc_auc", math.nan)
    if math.isfinite(auc):
        text = f"The area under the ROC curve, by the score for {name}, is "
        text += with_interval(auc, ends.get("binary/roc_auc"))
        ceiling = m["binary/roc_auc_ceiling"]
        if ceiling < 1:
            normalised = m["binary/roc_auc_normalized"]
            text += (
                f". Mismatches within the group cap it at {number(ceiling)}; relative to that cap it is "
                f"{number(normalised)} (chance: 0.5)"
            )
        out.append(text + ".")
    return out


def _probabilities(evaluation: Evaluation) -> list[str]:
    m, ends = evaluation.metrics, evaluation.intervals
    bias = m.get("prevalence/bias", math.nan)
    if math.isnan(bias) or evaluation.positive is None:
        return []
    expected, actual = m["prevalence/expected_count"], m["prevalence/actual"] * evaluation.n_samples
    reach = ends.get("prevalence/bias")
    text = (
        f"The probabilities of {named(evaluation.positive)} sum to {expected:,.1f}; {actual:,.0f} are actual. The bias "
        f"per sample is {with_interval(bias, reach)}"
    )
    if reach is not None:
        inside = reach[0] <= 0 <= reach[1]
        text += ", compatible with no bias" if inside else ", more than chance explains"
    return [text + "."]


def _prevalence(evaluation: Evaluation) -> list[str]:
    estimate = evaluation.prevalence
    if estimate is None:
        return []
    positive, negative = named(evaluation.positive), named(evaluation.negative)
    if math.isnan(estimate.value):
        return [f"The calibrated prevalence of {positive} is undefined: {estimate.undefined['value']}."]
    shown = percent_with_interval(estimate.value, (estimate.low, estimate.high))
    where = "the target" if evaluation.statistics.target is not None else "these samples"
    text = f"Estimated from labelled scores, the prevalence of {positive} in {where} is {shown}"
    if evaluation.statistics.target is None:
        text += f" (actual: {percent(evaluation.metrics['prevalence/actual'])})"
    if all(map(math.isfinite, estimate.shares)):
        top = int(np.argmax(estimate.shares))
        part = "Most" if estimate.shares[top] > 0.5 else "The largest part"
        source = _SOURCES[top].format(positive=positive, negative=negative)
        text += (
            f". {part} of the uncertainty ({100 * estimate.shares[top]:.0f} %) comes from {source} would narrow the "
            "interval most"
        )
    return [text + "."]
