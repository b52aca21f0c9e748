"""Sentences that describe an evaluation to a reader who did not run the model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from cmtrack.base import BaseEvaluation
from cmtrack.comparison import constant_answer
from cmtrack.digits import short_percent, significant
from cmtrack.evaluation import Evaluation
from cmtrack.evaluation.rows import step_called
from cmtrack.grouping import Label
from cmtrack.metrics.intervals import FEW_ROWS
from cmtrack.metrics.names import encode_label
from cmtrack.names import as_sentence
from cmtrack.prevalence.fit import doubt
from cmtrack.prevalence.results import ASSUMES, PrevalenceEstimate
from cmtrack.report import segments
from cmtrack.report.constant import p_of
from cmtrack.report.formatting import (
    capital,
    count,
    counted,
    join_names,
    level,
    missing_with_reason,
    named,
    needs_counts,
    number,
    p_equals,
    percent,
    percent_with_interval,
    samples,
    shown,
)
from cmtrack.report.probabilities import average, confidence, judgement
from cmtrack.statistics import BinaryCounts

MISMATCHES = (
    "IM (intragroup mismatch) counts the rows with an error within the correct group. Each of them "
    "is counted twice: in the IM row and in the IM column."
)
RARE_SHARE = 0.1
"""Share of positive rows below which accuracy hardly depends on the positive rows.

If fewer rows are positive, the report does not compare the accuracy with always predicting the
largest class.
"""
GOOD_AREA = 0.8
"""Smallest area under the ROC curve at which a score is said to rank rows well.

If a score ranks rows well but the predicted labels miss most positives, the report suggests a
different threshold.
"""
CLEAR = 0.01
"""Largest p-value at which a difference is called clear.

If the limit for p-values were 0.05, one in twenty equally good models would be reported as clearly
different.
"""
AREA_OF_CLASSES = "multiclass/roc_auc_ovr_macro"
"""Name of the area under the ROC curve for all classes, used if there is no positive group."""
_SOURCES = (
    "the number of scored rows. Scoring more rows",
    "the number of labelled rows of {positive}. Labelling more of these rows",
    "the number of labelled rows of {negative}. Labelling more of these rows",
)


QUESTIONS = {
    "good": "Is it good enough?",
    "confusions": "What does it confuse?",
    "probabilities": "Are the probabilities right?",
    "failures": "Where does it fail?",
    "prevalence": "How many positives are there?",
    "facts": "What was evaluated?",
}
"""Headings of a report's sections by key, in the order in which readers ask the questions.

Sentences and figures without a section are at the top of the page.
"""
QUESTION_OF_METRICS = {
    "probability": "probabilities",
    "calibration": "probabilities",
    "confidence": "probabilities",
    "spcc": "probabilities",
    "prevalence": "prevalence",
}
"""Section of the report by the first part of a headline metric's name, unless it is "good"."""
QUESTION_OF_WARNINGS = {
    "class": "confusions",
    "binary": "good",
    "probability": "probabilities",
    "spcc": "probabilities",
    "prevalence": "prevalence",
    "segments": "failures",
}
"""Section of the report by the metrics that a warning is about.

Other warnings are at the top of the report.
"""
_COUNTED_WITHOUT_LABELS = "Can positives be counted without labels?"
"""Heading for a prevalence estimate on labelled rows, which serves as a check."""


def question(key: str, evaluation: BaseEvaluation) -> str:
    """Return the heading of a section for an evaluation."""
    is_labelled = isinstance(evaluation, Evaluation) and evaluation.statistics.target is None
    if key == "prevalence" and is_labelled:
        return _COUNTED_WITHOUT_LABELS
    return QUESTIONS[key]


def told(evaluation: Evaluation, *, top: bool = False) -> list[tuple[str, str]]:
    """Return the sentences on an evaluation and their sections, most important first.

    ``top``: whether to return only the sentences at the top of the page. The others may need
        computations that nothing else needs, such as the band around a calibration curve.
    """
    # Each entry lists a function, the section of the metrics that the function reads, and the
    # section of its sentences.
    sources: dict[Callable[[Evaluation], list[str]], tuple[str, str]] = {
        _findings: ("binary", ""),
        _worst_segment: ("", ""),
        _correlation: ("multiclass" if evaluation.positive is None else "binary", "good"),
        _overall: (_overall_section(evaluation), _question_of_overall(evaluation)),
        _correlation_of_classes: ("multiclass", "confusions"),
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
    statements = []
    for sentences, (metrics, section) in sources.items():
        if top and section:
            continue
        if not metrics or evaluation.has_section(metrics):
            statements += [(section, sentence) for sentence in sentences(evaluation) if sentence]
    return statements


def question_of_metric(evaluation: BaseEvaluation, name: str) -> str:
    """Return the section of the report that lists a headline metric."""
    prefix, _, _ = name.partition("/")
    if prefix in QUESTION_OF_METRICS:
        return QUESTION_OF_METRICS[prefix]
    if prefix == "reduced" and evaluation.positive is not None:
        return "confusions"
    return "good"


def first_warnings(evaluation: BaseEvaluation) -> list[str]:
    """Return the warnings that concern the numbers at the top of the page."""
    return warnings_about(evaluation, "")


def warnings_about(evaluation: BaseEvaluation, key: str) -> list[str]:
    """Return the warnings for a section of the page, or for the top if ``key`` is empty."""
    return [
        as_sentence(warning)
        for section, warning in evaluation.warnings_by_section
        if _question_of_warning(evaluation, section) == key
    ]


def _question_of_warning(evaluation: BaseEvaluation, section: str) -> str:
    if section == "class" and not _has_positives_to_rely_on(evaluation):
        return ""
    return QUESTION_OF_WARNINGS.get(section, "")


def _has_positives_to_rely_on(evaluation: BaseEvaluation) -> bool:
    """Return whether the numbers at the top are about two groups with enough rows each."""
    cells = evaluation.binary if isinstance(evaluation, Evaluation) else None
    if cells is None:
        return False
    return min(cells.actual_positives, cells.total - cells.actual_positives) >= FEW_ROWS


def _question_of_overall(evaluation: Evaluation) -> str:
    """Return the section for the sentences on all classes: the top without a positive group."""
    if evaluation.positive is None or not evaluation.has_section("binary"):
        return ""
    return "good" if _has_two_sides(evaluation) else "confusions"


def _has_two_sides(evaluation: Evaluation) -> bool:
    """Return whether the classes are just the positive and the negative class."""
    return evaluation.positive is not None and len(evaluation.labels) == 2


def _overall_section(evaluation: Evaluation) -> str:
    """Return the section for metrics that cover all classes."""
    return "multiclass" if evaluation.none is None else "spans"


def confusions(evaluation: Evaluation) -> list[tuple[Label, Label, float, float]]:
    """Return the most frequent error of each class as (actual, predicted, count, share).

    The share is the count divided by the number of rows of the actual class. Classes without errors
    are omitted.
    """
    counts = evaluation.confusion_matrix.counts.astype(np.float64)
    errors = counts.copy()
    np.fill_diagonal(errors, 0)
    labels = evaluation.labels
    return [
        (labels[i], labels[j], float(errors[i, j]), float(errors[i, j] / counts[i].sum()))
        for i, j in enumerate(errors.argmax(axis=1))
        if errors[i, j] > 0
    ]


def _overall_spans(evaluation: Evaluation) -> list[str]:
    counts = evaluation.confusion_matrix.counts
    none = evaluation.labels.index(evaluation.none)
    # The row "none" counts predicted spans without an actual span, and the column "none" counts
    # actual spans without a predicted span.
    actual = counted(int(counts.sum() - counts[none].sum()), "actual span")
    predicted = counted(int(counts.sum() - counts[:, none].sum()), "predicted span")
    correct = count(int(counts.trace()))
    recall = shown(evaluation, "spans/recall_micro")
    precision = shown(evaluation, "spans/precision_micro")
    f1 = shown(evaluation, "spans/f1_micro")
    f1_macro = shown(evaluation, "spans/f1_macro")
    labels = counted(len(evaluation.classes), "label")
    return [
        f"{correct} of {actual} are found with the correct label (recall {recall}); "
        f"{correct} of {predicted} are correct (precision {precision}).",
        f"F1 is {f1} over all spans and {f1_macro} on average over {labels}.",
    ]


def _overall(evaluation: Evaluation) -> list[str]:
    if evaluation.none is not None:
        return _overall_spans(evaluation)
    if _has_two_sides(evaluation) and _has_rare_positives(evaluation):
        # Always predicting the negative class would be nearly as accurate.
        return []
    accuracy = shown(evaluation, "multiclass/accuracy", percent_with_interval)
    overall = (
        f"On {samples(evaluation)} of {counted(len(evaluation.labels), 'class')}, "
        f"the accuracy is {accuracy} ({level(evaluation.confidence_level)} interval)."
    )
    return [" ".join([overall, *_against_constant(evaluation)])]


def _correlation(evaluation: Evaluation) -> list[str]:
    """Return the sentence on the correlation of the positive group, or else of all classes."""
    if evaluation.none is not None:
        # Spans have no Matthews correlation.
        return []
    if evaluation.positive is None:
        value = _value_or_reason(evaluation, "multiclass/matthews_corrcoef")
        return [f"The Matthews correlation is {value}."]
    value = _value_or_reason(evaluation, "binary/matthews_corrcoef")
    sentence = f"The Matthews correlation for {named(evaluation.positive)} is {value}."
    return [" ".join([sentence, *_on_mismatches(evaluation)])]


def _on_mismatches(evaluation: Evaluation) -> list[str]:
    """Return the sentence that explains why mismatches do not lower the Matthews correlation."""
    if not n_mismatches(evaluation):
        return []
    mismatches = counted(n_mismatches(evaluation), "mismatch")
    return [
        f"It only compares the two groups, so the {mismatches} within a group count as hits, while "
        "recall, precision and accuracy count them as errors."
    ]


def n_mismatches(evaluation: Evaluation) -> float:
    """Return the number of rows with an error within the correct group.

    The number is 0 if there is no positive group.
    """
    cells = evaluation.binary
    if cells is None:
        return 0
    return cells.imp + cells.imn


def other_within(evaluation: Evaluation, step: str) -> str:
    """Return what a mismatch in a step is predicted as, such as "another class".

    If an earlier step is relaxed, errors within its groups are correct. The mismatches of the next
    step are then errors between these groups.
    """
    names = [reduced.name for reduced in evaluation.reduced]
    earlier = [step_called(evaluation, name) for name in names[: names.index(step)]]
    if not earlier:
        return "another class"
    if all(composed.relaxed for composed in earlier):
        return f"another {named(earlier[-1].name)} group"
    return "another class or group"


def _correlation_of_classes(evaluation: Evaluation) -> list[str]:
    """Return the sentence on the correlation of all classes next to a positive group."""
    if evaluation.positive is None or _has_two_sides(evaluation):
        # The other sentence already states this number.
        return []
    value = _value_or_reason(evaluation, "multiclass/matthews_corrcoef")
    return [f"The Matthews correlation over all classes is {value}."]


def _value_or_reason(evaluation: Evaluation, correlation: str) -> str:
    if math.isnan(evaluation.metrics[correlation]):
        return f"undefined: {evaluation.undefined[correlation]}"
    return f"{shown(evaluation, correlation)} (0 is guessing, 1 is perfect)"


def _against_constant(evaluation: Evaluation) -> list[str]:
    """Return the sentence that compares the accuracy with always predicting the largest class.

    The list is empty if positives are rare.
    """
    if _has_rare_positives(evaluation):
        return []
    constant = constant_answer(evaluation, "multiclass/accuracy")
    if constant is None:
        raise ValueError("an accuracy of single labels needs a constant answer")
    answer = named(constant.answer)
    if constant.unbeatable:
        return [f"All rows are of class {answer}, so always predicting it makes no errors."]
    comparison = "not clearly different from"
    if constant.shown_better or constant.shown_worse:
        comparison = "better than" if constant.ahead else "worse than"
        if constant.pvalue < CLEAR:
            comparison = f"clearly {comparison}"
    # Both shares are written with the number of digits that the accuracy's interval allows.
    interval = evaluation.intervals.get("multiclass/accuracy")
    share = percent_with_interval(constant.value, interval).partition(" [")[0]
    return [
        f"This is {comparison} always predicting the most frequent class, {answer} "
        f"({share}; {p_of(constant)})."
    ]


def _has_rare_positives(evaluation: Evaluation) -> bool:
    """Return whether positives are so rare that accuracy hardly depends on them."""
    cells = evaluation.binary
    if evaluation.positive is None or cells is None:
        return False
    return 0 < cells.actual_positives < RARE_SHARE * cells.total


def _classes(evaluation: Evaluation) -> list[str]:
    metrics = evaluation.metrics
    f1_by_class = {}
    n_present = 0
    for label in evaluation.classes:
        prefix = f"class/{encode_label(label)}"
        if metrics[f"{prefix}/support"] > 0:
            n_present += 1
            if math.isfinite(metrics[f"{prefix}/f1"]):
                f1_by_class[label] = metrics[f"{prefix}/f1"]
    if len(f1_by_class) < 2:
        return []
    top = max(f1_by_class.values())
    bottom = min(f1_by_class.values())
    if top == bottom:
        return [f"All classes have the same F1 ({number(top)})."]
    if n_present == 2 and evaluation.positive is not None:
        # The sentence on the positive group already covers both classes.
        return []
    best = _with_f1(evaluation, [label for label, f1 in f1_by_class.items() if f1 == top], top)
    worst = [label for label, f1 in f1_by_class.items() if f1 == bottom]
    worst_with_f1 = _with_f1(evaluation, worst, bottom)
    be = "is" if len(worst) == 1 else "are"
    return [f"The best class by F1 is {best}; the worst {be} {worst_with_f1}."]


def _with_f1(evaluation: Evaluation, labels: Sequence[Label], f1: float) -> str:
    """Return classes and their F1 as text, such as ``“6” (F1 0.644, n = 35)``."""
    size = ""
    if len(labels) == 1:
        support = evaluation.metrics[f"class/{encode_label(labels[0])}/support"]
        size = f", n = {count(support)}"
        if evaluation.weights_are == "sampling":
            size = f", weight {significant(support, 2)}"
    value = number(f1) if f1 else "0"
    return f"{join_names([named(label) for label in labels])} (F1 {value}{size})"


def _confusion(evaluation: Evaluation) -> list[str]:
    rows = confusions(evaluation)
    if not rows:
        return ["There are no errors on these rows."]
    actual, predicted, n, share = max(rows, key=lambda row: row[2])
    answer = named(predicted)
    if evaluation.none is not None and evaluation.none in (actual, predicted):
        spans = counted(n, "span")
        error = f"missing a span of class {named(actual)}: {spans} ({percent(share)})"
        if actual == evaluation.none:
            error = f"predicting {answer} for text without a span: {spans}"
        return [f"The most frequent error is {error}."]
    if evaluation.weights_are == "sampling":
        size = f"weight {significant(n, 2)}"
    else:
        size = counted(n, "row")
    confusion = f"{named(actual)} predicted as {answer}: {size}, {percent(share)} of the class"
    return [f"The most frequent confusion is {confusion}."]


def _steps(evaluation: Evaluation) -> list[str]:
    sentences = []
    for step in evaluation.reduced:
        prefix = f"reduced/{encode_label(step.name)}"
        rate = evaluation.metrics[f"{prefix}/mismatch_rate"]
        groups = join_names([named(group, 30) for group in step.labels], 6)
        accuracy = shown(evaluation, f"{prefix}/accuracy", percent_with_interval)
        step_name = named(step.name)
        text = f"After grouping by {step_name} ({groups}), {accuracy} of predictions are correct"
        if rate > 0:
            text += (
                f". Another {percent(rate)} predict {other_within(evaluation, step.name)} within "
                "the correct group; they do not count as correct"
            )
        sentences.append(f"{text}.")
    return sentences


def _findings(evaluation: Evaluation) -> list[str]:
    """Return the sentence on recall and precision.

    For example, ``The model finds 71.2% [61.0, 80.4] of “spam”; 87.1% [80.0, 92.4] of its
    “spam” predictions are correct``.
    """
    if evaluation.binary is None or evaluation.positive is None:
        return []
    found = _recall_in_words(evaluation, evaluation.binary)
    correct = _precision_in_words(evaluation, evaluation.binary)
    threshold = evaluation.decision_threshold
    if threshold is None:
        found = capital(found)
    else:
        found = f"With a threshold of {number(threshold)}, {found}"
    return [f"{found}; {correct}.", *_ranks_well(evaluation)]


def _recall_in_words(evaluation: Evaluation, cells: BinaryCounts) -> str:
    """Return the recall in words, as the share of positives that are found."""
    name = named(evaluation.positive)
    if not cells.actual_positives:
        return f"no row is {name}"
    recall = shown(evaluation, "binary/recall", percent_with_interval)
    if needs_counts(cells.tp, cells.actual_positives):
        positives = counted(cells.actual_positives, "row")
        return f"the model finds {count(cells.tp)} of {positives} of {name} ({recall})"
    return f"the model finds {recall} of {name}"


def _precision_in_words(evaluation: Evaluation, cells: BinaryCounts) -> str:
    """Return the precision in words, as the share of positive predictions that are correct."""
    predicted = cells.predicted_positives
    if not cells.actual_positives:
        if not predicted:
            return "the model never predicts it"
        times = "once" if predicted == 1 else f"{count(predicted)} times"
        return f"the model predicts it {times}"
    if not predicted:
        return f"it never predicts {named(evaluation.positive)}"
    precision = shown(evaluation, "binary/precision", percent_with_interval)
    remarks = []
    if needs_counts(cells.tp, predicted):
        remarks.append(f"{count(cells.tp)} of {count(predicted)}")
    if cells.imp:
        remarks.append(f"{counted(cells.imp, 'mismatch')} counted as wrong")
    text = f"{precision} of its {named(evaluation.positive)} predictions are correct"
    return f"{text} ({', '.join(remarks)})" if remarks else text


def _ranks_well(evaluation: Evaluation) -> list[str]:
    """Return the sentence on a score that ranks rows well although most positives are missed."""
    cells = evaluation.binary
    area = evaluation.metrics.get("binary/roc_auc", math.nan)
    if cells is None or not area >= GOOD_AREA or cells.actual_positives == 0:
        return []
    missed = cells.actual_positives - cells.tp
    low, _ = evaluation.intervals.get("binary/roc_auc", (0.0, 1.0))
    if missed <= cells.actual_positives / 2 or low <= 0.5:
        return []
    decision = "the predicted labels miss"
    if evaluation.decision_threshold is not None:
        decision = f"the threshold of {number(evaluation.decision_threshold)} misses"
    positives = f"{counted(cells.actual_positives, 'row')} of {named(evaluation.positive)}"
    return [
        f"The score ranks well (area under the ROC curve {number(area)}), "
        f"but {decision} {count(missed)} of {positives}. "
        "Choose a threshold with cmtrack threshold."
    ]


def _area(evaluation: Evaluation) -> list[str]:
    metrics = evaluation.metrics
    name = "binary/roc_auc"
    if evaluation.positive is None or not math.isfinite(metrics.get(name, math.nan)):
        return []
    score = f"the score for {named(evaluation.positive)}"
    text = f"The area under the ROC curve of {score} is {shown(evaluation, name)}"
    ceiling = metrics["binary/roc_auc_ceiling"]
    if ceiling < 1:
        relative = number(metrics["binary/roc_auc_normalized"])
        text += (
            f". On these rows, it cannot exceed {number(ceiling)}, because "
            f"{_never_hits(evaluation)} would be mismatches even if all rows were predicted "
            f"positive. Divided by this ceiling, it is {relative}; guessing then gives 0.5"
        )
    return [f"{text}."]


def _never_hits(evaluation: Evaluation) -> str:
    """Return the positive rows that are not hits at any threshold, such as "11 of 91 positives"."""
    share = 1 - evaluation.metrics["binary/roc_auc_ceiling"]
    cells = evaluation.binary
    if cells is None or evaluation.weights_are is not None:
        return f"{percent(share)} of positives"
    positives = cells.actual_positives
    return f"{count(round(share * positives))} of {count(positives)} positives"


def _areas(evaluation: Evaluation) -> list[str]:
    area = evaluation.metrics.get(AREA_OF_CLASSES, math.nan)
    if evaluation.positive is not None or math.isnan(area):
        return []
    return [
        "The area under the ROC curve, averaged over the classes (each against all others), is "
        f"{shown(evaluation, AREA_OF_CLASSES)} (guessing gives 0.5)."
    ]


def costs(evaluation: Evaluation) -> list[str]:
    """Return the sentences on the costs of the decisions and of the best constant answer."""
    if "cost/mean" not in evaluation.metrics:
        return []
    constant = constant_answer(evaluation, "cost/mean")
    if constant is None:
        raise ValueError("costs of single labels need a constant answer")
    if math.isnan(evaluation.metrics["cost/saved"]):
        outcome = ", the least possible cost"
    elif constant.shown_worse:
        outcome = f", which is less ({p_of(constant)})"
    elif not constant.shown_better:
        outcome = f", which is not clearly different ({p_of(constant)})"
    else:
        saved = shown(evaluation, "cost/saved", percent_with_interval)
        outcome = f". The decisions save {saved} of the avoidable cost"
    return [
        f"A decision costs {shown(evaluation, 'cost/mean')} on average. "
        f"Always predicting {named(constant.answer)}, the best constant answer, "
        f"would cost {number(constant.value)}{outcome}."
    ]


def _log_loss(evaluation: Evaluation) -> list[str]:
    loss = evaluation.metrics.get("probability/log_loss")
    skill = evaluation.metrics.get("probability/log_skill")
    if loss is None or skill is None:
        return []
    if math.isnan(loss):
        return [f"The log loss is {missing_with_reason(evaluation, 'probability/log_loss')}."]
    text = f"The log loss of the probabilities is {shown(evaluation, 'probability/log_loss')}"
    if not math.isfinite(skill):
        return [f"{text}."]
    shares = "class shares" if evaluation.reference is None else "reference class shares"
    interval = evaluation.intervals.get("probability/log_skill")
    if interval is not None and interval[0] <= 0 <= interval[1]:
        comparison = "which is not clearly different from"
    else:
        comparison = _times_as_large(1 - skill)
    return [f"{text}, {comparison} the log loss of always predicting the {shares}."]


def _times_as_large(ratio: float) -> str:
    """Return the ratio of two losses in words, such as "20.0% lower than" or "2.3 times"."""
    if ratio >= 2:
        return f"{significant(ratio, 2)} times"
    direction = "lower" if ratio < 1 else "higher"
    return f"{percent(abs(1 - ratio))} {direction} than"


def _worst_segment(evaluation: Evaluation) -> list[str]:
    """Return the sentence on the first segment that is worse than the rest."""
    return segments.sentences(evaluation)[:1]


def _probabilities(evaluation: Evaluation) -> list[str]:
    """Return the sentences on the confidence and on the probabilities of the positive group."""
    on_confidence = confidence(evaluation)
    on_positives = judgement(evaluation)
    sentences = [on_positives.sentence] if on_positives else []
    sentences.append(average(evaluation))
    return [
        on_confidence.sentence if on_confidence else "",
        " ".join(filter(None, sentences)),
    ]


def _prevalence(evaluation: Evaluation) -> list[str]:
    estimate = evaluation.prevalence
    if estimate is None or evaluation.calibrates_itself:
        return []
    positive = named(evaluation.positive)
    # Nobody needs to label rows whose labels are known.
    other = estimate.other_share(advise=evaluation.statistics.target is not None)
    if math.isnan(estimate.value):
        text = f"The prevalence of {positive} is not estimated: {estimate.undefined['value']}."
        return [f"{text} {other}".rstrip()]
    share = percent_with_interval(estimate.value, (estimate.low, estimate.high))
    if evaluation.statistics.target is not None:
        rows = "the target"
        actual = ""
    else:
        rows = "these rows"
        actual = f" (actual: {percent(evaluation.metrics['prevalence/actual'])})"
    text = (
        f"Estimated from labelled scores, the prevalence of {positive} in {rows} is {share}"
        f"{actual}. The estimate {ASSUMES}"
    )
    if doubt(estimate.fit_pvalue):
        pvalue = p_equals(estimate.fit_pvalue)
        text += f". This assumption may not hold ({pvalue}), so do not trust the estimate."
        return [f"{text} {other}".rstrip()]
    if all(map(math.isfinite, estimate.shares)):
        text += f". {_largest_uncertainty(evaluation, estimate)}"
    if math.isfinite(estimate.missed_move):
        most = f"{significant(estimate.missed_move, 2, 2)} percentage points"
        text += f". A change too small for a test to notice can move the estimate by up to {most}"
    return [f"{text}. {other}".rstrip()]


def _largest_uncertainty(evaluation: Evaluation, estimate: PrevalenceEstimate) -> str:
    """Return the largest source of a prevalence estimate's uncertainty, in words."""
    largest = int(np.argmax(estimate.shares))
    share = estimate.shares[largest]
    most = "Most" if share > 0.5 else "The largest part"
    source = _SOURCES[largest].format(
        positive=named(evaluation.positive), negative=named(evaluation.negative)
    )
    return (
        f"{most} of the uncertainty ({short_percent(share)}) comes from {source} "
        "would narrow the interval most"
    )
