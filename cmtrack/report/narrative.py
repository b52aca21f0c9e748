"""An evaluation in sentences, for a reader who did not run the model."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison import constant_answer
from cmtrack.digits import short_percent, significant
from cmtrack.evaluation import Evaluation
from cmtrack.grouping import Label
from cmtrack.metrics.names import encode_label
from cmtrack.prevalence.fit import doubt
from cmtrack.prevalence.results import ASSUMES
from cmtrack.report import segments
from cmtrack.report.constant import p_of
from cmtrack.report.formatting import (
    count,
    counted,
    join_names,
    level,
    missing_with_reason,
    named,
    number,
    p_equals,
    percent,
    percent_with_interval,
    samples,
    shown,
)
from cmtrack.report.probabilities import average, confidence, judgement

MISMATCHES = "IM: right group, wrong class. Shown twice (row and column): do not add them."
LEAST_WITHOUT_COUNTS = 50
"""Rows from which on a share stands without its counts: of fewer, one row moves it by more than 2 percentage points."""
RARE_SHARE = 0.1
"""Share of positives below which accuracy is not compared with the most frequent class: it says little of them."""
GOOD_AREA = 0.8
"""Area under the ROC curve from which on a score ranks well enough that the threshold is worth a word."""
CLEAR = 0.01
"""Largest p-value of a difference that is called clear: at 0.05 one in twenty equal models would be."""
AREA_OF_CLASSES = "multiclass/roc_auc_ovr_macro"
"""The area that stands for all classes, where there are no two groups."""
_SOURCES = (
    "the number of scored samples: scoring more samples",
    "the number of labelled samples of {positive}: labelling more of them",
    "the number of labelled samples of {negative}: labelling more of them",
)


QUESTIONS = {
    "good": "Is it good enough?",
    "confusions": "What does it confuse?",
    "probabilities": "Are the probabilities right?",
    "failures": "Where does it fail?",
    "prevalence": "How many positives are there?",
    "facts": "What was evaluated?",
}
"""The sections of a report by their keys, in the order in which people ask; what has no section leads the page."""
_COUNTED_WITHOUT_LABELS = "Would counting work without labels?"
"""The question of an estimate on labelled rows: their share of positives is known, so that it is only a check."""


def question(key: str, evaluation: BaseEvaluation) -> str:
    """Return the heading of a section for an evaluation."""
    of_labelled_rows = isinstance(evaluation, Evaluation) and evaluation.statistics.target is None
    return _COUNTED_WITHOUT_LABELS if key == "prevalence" and of_labelled_rows else QUESTIONS[key]


def told(evaluation: Evaluation) -> list[tuple[str, str]]:
    """The sentences on an evaluation, made from its numbers, the most important first, each with its section."""
    parts = {
        _findings: ("binary", ""),
        _overall: ("multiclass" if evaluation.none is None else "spans", ""),
        _steps: ("reduced", "confusions"),
        _classes: ("class", "confusions"),
        _confusion: ("multiclass", "confusions"),
        _area: ("binary", "good"),
        _areas: ("multiclass", "good"),
        costs: ("cost", "good"),
        _log_loss: ("probability", "probabilities"),
        _probabilities: ("", "probabilities"),
        _prevalence: ("prevalence", "prevalence"),
        segments.sentences: ("", "failures"),
    }
    return [
        (section, sentence)
        for part, (needed, section) in parts.items()
        if not needed or evaluation.has_section(needed)
        for sentence in part(evaluation)
        if sentence
    ]


def verdict(evaluation: Evaluation) -> list[str]:
    """The sentences on an evaluation, the most important first."""
    return [sentence for _, sentence in told(evaluation)]


def lead(evaluation: Evaluation) -> list[str]:
    """Return the first sentences: on the positive group, if there is one, and on how many predictions are right."""
    parts = {_findings: "binary", _overall: "multiclass" if evaluation.none is None else "spans"}
    by_part = {
        part: part(evaluation) for part, section in parts.items() if evaluation.has_section(section)
    }
    found = by_part.pop(_findings, [])  # also why few are found
    return [*found, *(sentences[0] for sentences in by_part.values() if sentences)]


def confusions(evaluation: Evaluation) -> list[tuple[Label, Label, float, float]]:
    """For each class with errors: (actual, most frequent wrong prediction, count, share of the actual class)."""
    counts = evaluation.confusion_matrix.counts.astype(np.float64)
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    taken = wrong.argmax(axis=1)
    labels = evaluation.labels
    return [
        (labels[i], labels[j], float(wrong[i, j]), float(wrong[i, j] / counts[i].sum()))
        for i, j in enumerate(taken)
        if wrong[i, j] > 0
    ]


def _overall_spans(evaluation: Evaluation) -> list[str]:
    counts = evaluation.confusion_matrix.counts
    right = int(counts.trace())
    last = evaluation.labels.index(evaluation.none)
    actual, predicted = (int(counts.sum() - counts.sum(axis=axis)[last]) for axis in (1, 0))
    names = ("precision_micro", "recall_micro", "f1_micro", "f1_macro")
    precision, recall, f1, macro = (shown(evaluation, f"spans/{name}") for name in names)
    return [
        f"Of {counted(actual, 'actual span')}, {count(right)} are found with the right label (recall {recall}); of "
        f"{counted(predicted, 'predicted span')}, {count(right)} are right (precision {precision}).",
        f"F1 is {f1} over all spans, and {macro} on average over {counted(len(evaluation.classes), 'label')}.",
    ]


def _overall(evaluation: Evaluation) -> list[str]:
    if evaluation.none is not None:
        return _overall_spans(evaluation)
    accuracy = shown(evaluation, "multiclass/accuracy", percent_with_interval)
    overall = (
        f"On {samples(evaluation)} of {counted(len(evaluation.labels), 'class')} the accuracy is {accuracy} "
        f"({level(evaluation.confidence_level)} interval)."
    )
    out = [" ".join([overall, *_against_constant(evaluation)])]
    mcc = "multiclass/matthews_corrcoef"
    if math.isnan(evaluation.metrics[mcc]):
        return [*out, f"The Matthews correlation is undefined: {evaluation.undefined[mcc]}."]
    return [
        *out,
        f"The Matthews correlation is {shown(evaluation, mcc)} (0: guessing, 1: perfect).",
    ]


def _against_constant(evaluation: Evaluation) -> list[str]:
    """Return the sentence that compares the accuracy with the most frequent class; none of rare positives."""
    cells = evaluation.binary
    if (
        evaluation.positive is not None
        and cells is not None
        and 0 < cells.actual_positives < RARE_SHARE * cells.total
    ):
        return []
    constant = constant_answer(evaluation, "multiclass/accuracy")
    assert constant is not None  # accuracies of single labels have one
    if constant.unbeatable:
        return [
            f"Every sample is of the class {named(constant.answer)}: always predicting it makes no error."
        ]
    how = "not clearly different from"
    if constant.shown_better or constant.shown_worse:
        how = f"{'better' if constant.ahead else 'worse'} than"
        how = f"clearly {how}" if constant.pvalue < CLEAR else how
    ends = evaluation.intervals.get("multiclass/accuracy")
    # in the digits of the accuracy
    share = percent_with_interval(constant.value, ends).partition(" [")[0]
    answer = f"{named(constant.answer)} ({share}; {p_of(constant)})"
    return [f"This is {how} always predicting the most frequent class, {answer}."]


def _classes(evaluation: Evaluation) -> list[str]:
    m = evaluation.metrics
    present = [
        label for label in evaluation.classes if m[f"class/{encode_label(label)}/support"] > 0
    ]
    by_f1 = [(m[f"class/{encode_label(label)}/f1"], label) for label in present]
    scored = [(f1, label) for f1, label in by_f1 if math.isfinite(f1)]
    if len(scored) < 2:
        return []
    top, bottom = max(f1 for f1, _ in scored), min(f1 for f1, _ in scored)
    if top == bottom:
        return [f"All classes have the same F1 ({number(top)})."]
    if len(present) == 2 and evaluation.positive is not None:  # one is the rest of the other
        return []
    best, worst = (
        _with_f1(evaluation, [label for f1, label in scored if f1 == end], end)
        for end in (top, bottom)
    )
    return [f"Best class by F1: {best}. Worst: {worst}."]


def _with_f1(evaluation: Evaluation, labels: Sequence[Label], f1: float) -> str:
    """``“6” (F1 0.644, n = 35)``, or ``“2”, “3” and “4” (F1 0)``."""
    size = ""
    if len(labels) == 1:
        support = evaluation.metrics[f"class/{encode_label(labels[0])}/support"]
        size = (
            f", weight {significant(support, 2)}"
            if evaluation.weights_are == "sampling"
            else f", n = {count(support)}"
        )
    return (
        f"{join_names([named(label) for label in labels])} (F1 {number(f1) if f1 else '0'}{size})"
    )


def _confusion(evaluation: Evaluation) -> list[str]:
    rows = confusions(evaluation)
    if not rows:
        return ["There are no errors on these samples."]
    actual, predicted, n, share = max(rows, key=lambda row: row[2])
    if evaluation.none is not None and evaluation.none in (actual, predicted):
        if actual == evaluation.none:
            return [
                f"Most frequent error: {counted(n, 'span')} predicted as {named(predicted)} where there is none."
            ]
        return [
            f"Most frequent error: {counted(n, 'span')} of class {named(actual)} missed ({percent(share)})."
        ]
    if evaluation.weights_are == "sampling":
        return [
            f"Most frequent confusion: {named(actual)} was predicted as {named(predicted)}, "
            f"with weight {significant(n, 2)} ({percent(share)} of the class)."
        ]
    return [
        f"Most frequent confusion: {counted(n, 'sample')} of class {named(actual)} {'was' if n == 1 else 'were'} "
        f"predicted as {named(predicted)} ({percent(share)} of the class)."
    ]


def _steps(evaluation: Evaluation) -> list[str]:
    out = []
    for step in evaluation.reduced:
        prefix = f"reduced/{encode_label(step.name)}"
        rate = evaluation.metrics[f"{prefix}/mismatch_rate"]
        groups = join_names([named(g, 30) for g in step.labels], 6)
        right = shown(evaluation, f"{prefix}/accuracy", percent_with_interval)
        text = f"Grouped by {named(step.name)} ({groups}), {right} are correct"
        if rate > 0:
            text += f"; another {percent(rate)} are in the right group but the wrong class, which does not count"
        out.append(text + ".")
    return out


def _findings(evaluation: Evaluation) -> list[str]:
    """Recall and precision in words: ``Finds 71.2 % [61.0, 80.4] of “spam”; 87.1 % … of what it calls so is right``."""
    cells = evaluation.binary
    if cells is None or evaluation.positive is None:
        return []
    names = ("binary/recall", "binary/precision")
    recall, precision = (shown(evaluation, name, percent_with_interval) for name in names)
    name, threshold = named(evaluation.positive), evaluation.decision_threshold
    decided = "" if threshold is None else f"At a score of {number(threshold)} or more: "
    actual, called = cells.actual_positives, cells.predicted_positives
    finding = f"finds {recall} of {name}"
    if _needs_counts(cells.tp, actual):
        finding = f"finds {count(cells.tp)} of {counted(actual, 'sample')} of {name} ({recall})"
    right = f"{precision} of what it calls so is right" if called else "it never predicts it"
    if _needs_counts(cells.tp, called):
        right += f" ({count(cells.tp)} of {count(called)})"
    if not actual:
        finding = f"there is no sample of {name}"
        times = "once" if called == 1 else f"{count(called)} times"
        right = f"it is predicted {times}" if called else "it is never predicted"
    out = decided + (finding if decided else finding[0].upper() + finding[1:]) + f"; {right}."
    return [out, *_ranks_well(evaluation)]


def _needs_counts(hits: float, total: float) -> bool:
    """True for a share of few rows; weights have no counts."""
    return (
        0 < total == round(total)
        and hits == round(hits)
        and min(hits, total) < LEAST_WITHOUT_COUNTS
    )


def _ranks_well(evaluation: Evaluation) -> list[str]:
    """Return the sentence on a score that ranks well although the labels miss most positives."""
    cells = evaluation.binary
    area = evaluation.metrics.get("binary/roc_auc", math.nan)
    if cells is None or not area >= GOOD_AREA or cells.actual_positives == 0:
        return []
    missed = cells.actual_positives - cells.tp
    if (
        missed <= cells.actual_positives / 2
        or evaluation.intervals.get("binary/roc_auc", (0.0, 1.0))[0] <= 0.5
    ):
        return []
    but = "the predicted labels miss"
    if evaluation.decision_threshold is not None:
        but = f"the threshold of {number(evaluation.decision_threshold)} misses"
    return [
        f"The score ranks well (area under the ROC curve {number(area)}), but {but} {count(missed)} of "
        f"{counted(cells.actual_positives, 'sample')} of {named(evaluation.positive)}: choose a threshold with cmtrack "
        "threshold."
    ]


def _area(evaluation: Evaluation) -> list[str]:
    m, name = evaluation.metrics, "binary/roc_auc"
    if evaluation.positive is None or not math.isfinite(m.get(name, math.nan)):
        return []
    by = f"by the score for {named(evaluation.positive)}"
    text = f"The area under the ROC curve, {by}, is {shown(evaluation, name)}"
    ceiling = m["binary/roc_auc_ceiling"]
    if ceiling < 1:
        relative = (
            f"relative to that cap it is {number(m['binary/roc_auc_normalized'])} (chance: 0.5)"
        )
        text += f". Mismatches within the group cap it at {number(ceiling)}; {relative}"
    return [text + "."]


def _areas(evaluation: Evaluation) -> list[str]:
    if evaluation.positive is not None or math.isnan(
        evaluation.metrics.get(AREA_OF_CLASSES, math.nan)
    ):
        return []
    area = shown(evaluation, AREA_OF_CLASSES)
    return [
        f"The area under the ROC curve, of each class against all others, is {area} on average (chance: 0.5)."
    ]


def costs(evaluation: Evaluation) -> list[str]:
    """Sentences on what decisions cost, and what the best constant answer would; none without costs."""
    if "cost/mean" not in evaluation.metrics:
        return []
    constant = constant_answer(evaluation, "cost/mean")
    assert constant is not None  # costs are of single labels
    best = f"Always answering {named(constant.answer)}, the best constant answer, would cost {number(constant.value)}"
    if math.isnan(evaluation.metrics["cost/saved"]):
        best += ", and nothing costs less"
    elif constant.shown_worse:
        best += f", which is less ({p_of(constant)})"
    elif not constant.shown_better:
        best += f", which is not clearly different ({p_of(constant)})"
    else:
        best += f": {shown(evaluation, 'cost/saved', percent_with_interval)} of the avoidable cost is saved"
    return [f"A decision costs {shown(evaluation, 'cost/mean')} on average. {best}."]


def _log_loss(evaluation: Evaluation) -> list[str]:
    loss, skill = (
        evaluation.metrics.get(f"probability/{name}") for name in ("log_loss", "log_skill")
    )
    if loss is None or skill is None:
        return []
    if math.isnan(loss):
        return [f"The log loss is {missing_with_reason(evaluation, 'probability/log_loss')}."]
    text = f"The log loss of the probabilities is {shown(evaluation, 'probability/log_loss')}"
    if math.isfinite(skill):
        shares = "its share" if evaluation.reference is None else "the share of the reference"
        reach = evaluation.intervals.get("probability/log_skill")
        if reach is not None and reach[0] <= 0 <= reach[1]:
            text += f", not clearly different from that of always giving each class {shares}"
        else:
            text += f", {percent(abs(skill))} {'less' if skill > 0 else 'more'} than always giving each class {shares}"
    return [text + "."]


def _probabilities(evaluation: Evaluation) -> list[str]:
    of_predictions, judged = confidence(evaluation), judgement(evaluation)
    sure = of_predictions.sentence if of_predictions else ""
    return [sure, " ".join(filter(None, (judged.sentence if judged else "", average(evaluation))))]


def _prevalence(evaluation: Evaluation) -> list[str]:
    estimate = evaluation.prevalence
    if estimate is None or evaluation.calibrates_itself:
        return []
    positive, negative = named(evaluation.positive), named(evaluation.negative)
    if math.isnan(estimate.value):
        return [f"The prevalence of {positive} is not estimated: {estimate.undefined['value']}."]
    share = percent_with_interval(estimate.value, (estimate.low, estimate.high))
    where = "the target" if evaluation.statistics.target is not None else "these samples"
    text = f"Estimated from labelled scores, the prevalence of {positive} in {where} is {share}"
    if evaluation.statistics.target is None:
        text += f" (actual: {percent(evaluation.metrics['prevalence/actual'])})"
    text += f"; this {ASSUMES}"
    if doubt(estimate.fit_pvalue):
        return [
            f"{text}. They may not be ({p_equals(estimate.fit_pvalue)}): do not trust the estimate."
        ]
    if all(map(math.isfinite, estimate.shares)):
        top = int(np.argmax(estimate.shares))
        part = "Most" if estimate.shares[top] > 0.5 else "The largest part"
        source = _SOURCES[top].format(positive=positive, negative=negative)
        much = short_percent(estimate.shares[top])
        text += f". {part} of the uncertainty ({much}) comes from {source} would narrow the interval most"
    if math.isfinite(estimate.missed_move):
        most = f"{significant(estimate.missed_move, 2, 2)} percentage points"
        text += f". A shift that the test of the fit would miss moves it by up to {most}"
    return [text + "."]
