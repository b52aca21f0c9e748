"""An evaluation in plain words: numbers as people read them, and the sentences of a verdict."""

from __future__ import annotations

import math

import numpy as np

from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.face import Judged
from cmtrack.evaluation.families import FamilyEvaluation
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import Interval
from cmtrack.metrics.names import encode_label

SHORT = 60
_SOURCES = ("the number of scored samples", "the labelled samples of {positive}", "the labelled samples of {negative}")
_ADVICE = ("more scored samples", "more labelled samples of {positive}", "more labelled samples of {negative}")


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


def short(label: object, most: int = SHORT) -> str:
    """A label on one line, cut in its middle where it is long."""
    text = " ".join(str(label).split()) or "(empty)"
    return text if len(text) <= most else f"{text[: most // 2]}…{text[-(most - most // 2 - 1) :]}"


def counted(n: float, noun: str) -> str:
    """``1 sample``, ``1,200 samples``; fractional weights keep a decimal."""
    return f"{count(n)} {noun}" if n == 1 else f"{count(n)} {noun}{'es' if noun.endswith('s') else 's'}"


def samples(evaluation: Judged) -> str:
    """How many samples, or documents, were evaluated, and their weight where it is another number."""
    rows = evaluation.statistics.digest.rows
    weight = evaluation.n_samples
    if isinstance(evaluation, Evaluation) and evaluation.none is not None:
        return f"{counted(weight, 'span')} in {counted(rows, 'document')}"
    noun = "document" if isinstance(evaluation, FamilyEvaluation) else "sample"
    return counted(rows, noun) + ("" if rows == weight else f" (weight {count(weight)})")


def verdict(evaluation: Evaluation) -> list[str]:
    """What a reader who did not run the model should know first, in sentences made from the numbers."""
    parts = (_overall, _classes, _confusion, _steps, _positive_group, _probabilities, _prevalence)
    return [sentence for part in parts for sentence in part(evaluation)]


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
    most = short(evaluation.labels[largest])
    if reach is not None and reach[0] > baseline:
        comparison = "it clearly beats"
    elif reach is not None and reach[1] < baseline:
        comparison = "it does clearly worse than"
    else:
        comparison = "it cannot be told apart from"
    out = [
        f"On {samples(evaluation)} of {counted(len(evaluation.labels), 'class')} the classifier is right in "
        f"{percent(accuracy)} of the cases (accuracy {with_interval(accuracy, reach)}, {_level(evaluation)}); "
        f"{comparison} always answering the most frequent class, {most}, which is right in {percent(baseline)}."
    ]
    mcc = m["multiclass/matthews_corrcoef"]
    if math.isnan(mcc):
        out.append(f"Its Matthews correlation is undefined: {evaluation.undefined['multiclass/matthews_corrcoef']}.")
    else:
        shown = with_interval(mcc, ends.get("multiclass/matthews_corrcoef"))
        out.append(f"The Matthews correlation, 0 for guessing and 1 for perfect, is {shown}.")
    return out


def _classes(evaluation: Evaluation) -> list[str]:
    m = evaluation.metrics
    present = [label for label in evaluation.classes if m[f"class/{encode_label(label)}/support"] > 0]
    known = [(m[f"class/{encode_label(label)}/f1"], label) for label in present]
    known = [(f1, label) for f1, label in known if math.isfinite(f1)]
    if len(known) < 2:
        return []

    def described(pair: tuple[float, Label]) -> str:
        n = m[f"class/{encode_label(pair[1])}/support"]
        return f"{short(pair[1])} (F1 {number(pair[0])}, {counted(n, 'sample')})"

    best, worst = max(known, key=lambda pair: pair[0]), min(known, key=lambda pair: pair[0])
    if best[0] == worst[0]:
        return [f"All classes are recognised alike (F1 {number(best[0])})."]
    ties = sum(f1 == worst[0] for f1, _ in known) - 1
    more = f" and {ties} more with the same F1" if ties else ""
    return [f"It does best on {described(best)} and worst on {described(worst)}{more}."]


def _confusion(evaluation: Evaluation) -> list[str]:
    rows = confusions(evaluation)
    if not rows:
        return ["It makes no mistake on these samples."]
    actual, predicted, count, share = max(rows, key=lambda row: row[2])
    if evaluation.none is not None and evaluation.none in (actual, predicted):
        if actual == evaluation.none:
            return [f"The most frequent error: {counted(count, 'span')} of {short(predicted)} where there is none."]
        return [f"The most frequent error: {counted(count, 'span')} of {short(actual)} missed ({percent(share)})."]
    return [
        f"The most frequent confusion: {counted(count, 'sample')} of actual {short(actual)} called "
        f"{short(predicted)} ({percent(share)} of that class)."
    ]


def _steps(evaluation: Evaluation) -> list[str]:
    m, ends, out = evaluation.metrics, evaluation.intervals, []
    for step in evaluation.reduced:
        prefix = f"reduced/{encode_label(step.name)}"
        accuracy, rate = m[f"{prefix}/accuracy"], m[f"{prefix}/mismatch_rate"]
        groups = ", ".join(short(g, 30) for g in step.labels[:6]) + (", …" if len(step.labels) > 6 else "")
        text = (
            f"With the classes grouped as “{short(step.name)}” ({groups}) it is right in {percent(accuracy)} "
            f"{interval(accuracy, ends.get(f'{prefix}/accuracy'))}"
        )
        if rate > 0:
            text += f"; {percent(rate)} more fall in the right group, but on a pair of classes that does not count"
        out.append(text.rstrip() + ".")
    return out


def _positive_group(evaluation: Evaluation) -> list[str]:
    if evaluation.positive is None:
        return []
    m, ends = evaluation.metrics, evaluation.intervals
    name = short(evaluation.positive)
    recall, precision = (with_interval(m[n], ends.get(n)) for n in ("binary/recall", "binary/precision"))
    out = [f"For {name}: recall {recall}, precision {precision}."]
    auc = m.get("binary/roc_auc", math.nan)
    if math.isfinite(auc):
        text = f"Ranked by its score for {name}, the area under the ROC curve is "
        text += with_interval(auc, ends.get("binary/roc_auc"))
        ceiling = m["binary/roc_auc_ceiling"]
        if ceiling < 1:
            normalised = m["binary/roc_auc_normalized"]
            text += (
                f"; mismatches inside the group leave room up to {number(ceiling)} only "
                f"(normalised {number(normalised)}, chance 0.5)"
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
        f"Its probabilities for {short(evaluation.positive)} sum to {expected:,.1f} where {actual:,.0f} are actual: "
        f"a bias of {with_interval(bias, reach).replace(' [', ' per sample [')}"
    )
    if reach is not None:
        inside = reach[0] <= 0 <= reach[1]
        text += ", which chance explains" if inside else ", which chance does not explain"
    return [text + "."]


def _prevalence(evaluation: Evaluation) -> list[str]:
    estimate = evaluation.prevalence
    if estimate is None:
        return []
    positive, negative = short(evaluation.positive), short(evaluation.negative)
    if math.isnan(estimate.value):
        return [f"The calibrated prevalence of {positive} is undefined: {estimate.undefined['value']}."]
    shown = with_interval(estimate.value, (estimate.low, estimate.high))
    where = "the target's samples" if evaluation.statistics.target is not None else "these samples"
    text = f"Corrected by labelled scores, the prevalence of {positive} in {where} is estimated at {shown}"
    if evaluation.statistics.target is None:
        text += f" (actual: {number(evaluation.metrics['prevalence/actual'])})"
    if all(map(math.isfinite, estimate.shares)):
        top = int(np.argmax(estimate.shares))
        names = {"positive": positive, "negative": negative}
        text += (
            f"; {percent(estimate.shares[top])} of its error variance comes from {_SOURCES[top].format(**names)}, "
            f"so {_ADVICE[top].format(**names)} would narrow it most"
        )
    return [text + "."]
