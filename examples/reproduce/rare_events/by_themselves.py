"""The section on what the published numbers say by themselves."""

from __future__ import annotations

from rare_events import audit, published
from rare_events.layout import TARGET
from study import Study

LAST = published.TABLE_2_4


def published_alone(study: Study) -> None:
    """What the published numbers say by themselves."""
    study.heading("What the published tables say by themselves")
    sizes, labels, counts = audit.target_size(), audit.label_rows(), audit.label_counts()
    fits = sizes[sizes["consistent"]]
    odd = sizes[~sizes["consistent"]]
    gaps = labels[["BA", "MCC", "Acc"]].abs().max().max()
    off = labels[(labels[["BA", "MCC", "Acc"]].abs() > 0.5e-4 + 1e-9).any(axis=1)]
    printed_accuracy = float(audit.printed_rows().loc[off.index[0], "Acc"])
    not_up = counts[~counts["agrees"]]
    weight_100 = published.WEIGHTS.loc[("100.0", "Yes", "Yes")]
    study.bullets(
        f'The column "TP" is {published.ACTUAL_POSITIVES} in every row, also where no website is labelled positive. '
        "It is the number of actual positives, and is called so here.",
        f"Every row's bias is (estimate - {published.ACTUAL_POSITIVES}) / n. By the digits that are printed, "
        f"{len(fits)} of {len(sizes)} rows agree on n between {fits['low'].max():.1f} and {fits['high'].min():.1f}, "
        f"so n = {TARGET}. The exception is {odd.index[0][0]}, {odd.index[0][1]}: its bias "
        f"{LAST['class weights'].bias} should read "
        f"{(LAST['class weights'].estimate - published.ACTUAL_POSITIVES) / TARGET:.6f}.",
        f"Table 2.4 gives {LAST['class weights'].estimate:.2f} platforms for weight 100, Table B.2 gives "
        f"{weight_100['Pos. Est.']:.2f} for the same: two runs, or two versions.",
        f"All {int((labels['FP'] % 1 == 0).sum())} rows of labels have whole numbers of predicted positives, and one "
        f"confusion matrix each gives their balanced accuracy, MCC and accuracy; a last digit differs in {len(off)} "
        f"row ({off.index[0][0]}: accuracy {printed_accuracy}, by the matrix "
        f"{printed_accuracy + off['Acc'].iloc[0]:.6f}). Means over 10 or 20 machines that differ would not. TF-IDF "
        "and logistic regression have no randomness of their own: the repeats saw the same training set, and the "
        "tables show one draw. Ours are over new training sets.",
        f"Calibrated labels are not those of a probability above one half: {int(counts['agrees'].sum())} of "
        f"{len(counts)} rows have exactly the estimate by probabilities, rounded up. They are the websites above the "
        "(1 - prevalence) quantile of the score. The exception is "
        f"{', '.join(not_up.index)}: {not_up['labels'].iloc[0]:.0f} labels where {not_up['rounded up'].iloc[0]} "
        "would be expected.",
        "Section 2.2 says that the state of the art was not calibrated; Table 2.1 has it calibrated.",
    )
    study.table(
        "published-label-rows",
        labels.astype({"FP": int}).reset_index(),
        "Published rows of labels: the confusion matrix that they allow, and its metrics minus the printed ones",
        digits=5,
    )
    study.outcome(
        "Tables 2.1-2.4, B.1, B.2 (consistency)",
        reproduced="size of the target, confusion matrices and the rule of calibrated labels found from the print",
        near=f"{len(fits)} of {len(sizes)} rows give n = {TARGET}; {len(labels)} confusion matrices to {gaps:.5f}; "
        f"{int(counts['agrees'].sum())} of {len(counts)} calibrated label counts exact",
        not_possible=f"Table 2.4's class weight row: bias and estimate do not agree, nor with Table B.2; "
        f"{', '.join(not_up.index)}: calibrated labels",
    )
