"""Family-wise confusion of weakly labelled codes: the source's figures, and its two questions on known confusions.

Run it with `python examples/reproduce/family_confusion.py [--fast]`.
"""

from __future__ import annotations

import mlflow
import numpy as np
import pandas as pd

from cmtrack import FamilyEvaluation, log_evaluation
from discharge_codes import published
from discharge_codes.cells import by_the_rules, cells_of, shown
from discharge_codes.comparison import PLAIN, RULES, Compared, compared, comparison_table, panels
from discharge_codes.figures import cells_figure, recovery_figure, several_codes_figure
from discharge_codes.laws import draw_actual, draw_predicted
from discharge_codes.margins import diagonals, four_documents, margin_table, share_table
from discharge_codes.models import IRIDOCYCLITIS, MIXES_UP, MODELS
from discharge_codes.recovery import evaluated, recovered, recovered_metrics, simulated
from discharge_codes.repeats import SIBLING, repeated, shares_at_once
from study import Study, study_command

TITLE = "Family-wise confusion of discharge codes"
SOURCE = (
    "M. Falis, Hierarchical Confusion Matrices (github.com/modr00cka/weak_hierarchical_confusion)."
)
SEED = 364
FAMILY = "364"
CODE = "364.01"


def main(study: Study) -> None:
    """The three figures, the rules behind them, and what they are for."""
    study.text(
        "The source draws predictions as rows and gold codes as columns. The matrices that are compared with its "
        "figures are drawn so here, too; the product's own matrices have actual (gold) codes as rows, "
        "predicted ones as columns."
    )
    figures(study)
    words(study)
    margins(study)
    questions(study)
    coverage(study)
    several_codes(study)


def figures(study: Study) -> None:
    """Figures 1 to 3, as published and by the rules."""
    for name, example in published.FIGURES.items():
        study.heading(f"{name} of the source")
        slug = name.lower().replace(" ", "")
        found = compared(example, plain=name == "Figure 2")
        drawn = cells_figure(panels(example, found[RULES].ours), f"{name}: one document")
        caption = (
            f"{name}. Predicted {', '.join(example.predicted)}; gold {', '.join(example.gold)}."
        )
        study.figure(slug, drawn, caption)
        study.table(f"{slug}_cells", comparison_table(found), f"{name}: cells, as predicted-gold")
        codes = [code for code in example.axis if code != published.OOF]
        own = by_the_rules(example.predicted, example.gold, codes).family_figure(FAMILY)
        study.figure(
            f"{slug}_product",
            own,
            f"{name} as the product draws it: rows actual, columns predicted.",
        )
        impossible = {"Figure 1": _figure_1, "Figure 2": _figure_2, "Figure 3": _figure_3}[name](
            study, example, found
        )
        near = "; ".join(
            f"{what}: {'equal' if cells == ours else 'not equal'}"
            for what, (cells, ours) in found.items()
        )
        study.outcome(
            name, reproduced="drawn, and each cell compared", near=near, not_possible=impossible
        )


def _figure_1(study: Study, example: published.Example, found: dict[str, Compared]) -> str:
    left = [code for code in example.predicted if code not in example.gold]
    study.text(
        f"{len(left)} predicted codes are left ({', '.join(left)}) for one gold code, and each of the pairs counts 1. "
        "The source's rules do not say what several mismatches count; its figure does."
    )
    return ""


def _figure_2(study: Study, example: published.Example, found: dict[str, Compared]) -> str:
    (cells, ours), plain = found[RULES], found[PLAIN]
    both = [code for code in example.predicted if code in example.gold]
    study.text(
        f"The right panel keeps {shown(cells - ours)}, though {' and '.join(both)} are on both sides: unlike Figure 1 "
        "it does not apply assumption 1. Without assumption 1 (`remove_matches=False`) the product gives "
        f"{'exactly the published panel' if plain.published == plain.ours else 'another matrix'}. With all rules the "
        f"code that is left has no partner and is out of family: {shown(ours - cells)}."
    )
    return "the right panel, by the source's own rules: it leaves out assumption 1"


def _figure_3(study: Study, example: published.Example, found: dict[str, Compared]) -> str:
    siblings = [code for code in example.predicted if code.startswith(FAMILY)]
    study.text(
        'The text of assumption 3 says that a code is out of family where "there is no code from that family present '
        f'in the set". But the predicted set has {len(siblings)} codes of the family, {" and ".join(siblings)}, and '
        "the figure still has OOF. So the rule must be, and in the product is: out of family where no *unmatched* "
        "sibling is left. Matches are no one's partner."
    )
    return ""


def words(study: Study) -> None:
    """The examples in the source's text."""
    study.heading("The examples in words")
    rows = []
    for name, example in published.WORDS.items():
        ours = cells_of(by_the_rules(example.predicted, example.gold))
        rows.append({"example": name, "published": shown(example.cells), "ours": shown(ours)})
        rows[-1]["equal"] = "yes" if ours == example.cells else "no"
    over = cells_of(by_the_rules(["A.1", "A.2"], ["A.2"]))
    study.table("words", pd.DataFrame(rows), "Pairs predicted-gold of the examples")
    equal = sum(row["equal"] == "yes" for row in rows)
    study.text(
        "The source asks whether A.1, predicted beside A.2 where only A.2 is gold, is a confusion with A.2 or has no "
        f"gold code. By its assumptions it is the latter: {shown(over)}."
    )
    study.outcome(
        "Examples of assumptions 2 and 3", reproduced="yes", near=f"{equal} of {len(rows)} equal"
    )


def margins(study: Study) -> None:
    """What product counting does to margins and shares."""
    study.heading("Several mismatches: what the margins of the counts are")
    evaluation = four_documents()
    frame = margin_table(evaluation, FAMILY)
    study.table(
        "margins",
        frame,
        f"Four documents, family {FAMILY}: margins of the matrices under each matching",
    )
    wrong = {
        name: int((frame[name] != frame["documents"]).sum())
        for name in ("product", "row", "column", "balanced")
    }
    shares = share_table(evaluation, CODE, "actual")
    study.table("shares", shares, f"What is predicted where {CODE} is gold", digits=4)
    own, source = shares[published.OOF]
    documents = evaluation.given_actual(CODE).documents
    study.text(
        "Figure 1 counts each pair of several mismatches once (`product`). A code that meets two others then counts "
        f"twice, and {wrong['product']} of {len(frame)} margins are not the number of documents with the code. `row` "
        f"keeps the predicted codes' margins, `column` the actual ones', `balanced` both ({wrong['balanced']} differ). "
        f"In {documents} documents {CODE} is gold, and found in none. In one of them two wrong codes of the family "
        f"stand for it, in the other nothing is left. So its share out of family is {own:.4f}; product counts over "
        f"their sum, as in the authors' code, give {source:.4f}, since the first document counts twice."
    )
    study.text(
        "The authors' code calls such shares of product counts recall, which they are not (see the last section). It "
        "also gives out of family one column for all families "
        f"({' and later '.join(map(str, published.CODE_OOF_INDICES))} by default), which a code of that number would "
        "share; the product has one per family."
    )
    study.outcome(
        "Counting of several mismatches",
        reproduced="as in Figure 1 (product), and three with true margins",
        near=f"out of family given {CODE}: {own:.4f}, product counts {source:.4f}",
        not_possible="margins of product counts are no numbers of codes",
    )


def questions(study: Study) -> None:
    """The two questions of the source, on codes whose confusions are known."""
    study.heading("The two questions, where the answer is known")
    documents = study.pick(fast=3000, full=50_000)
    study.text(
        "The source asks: a code is predicted; is it right, or a sibling of it, or out of family? And a code is gold; "
        f"what is predicted? Its discharge summaries (MIMIC-III) may not be passed on, so {documents:,} documents are "
        f"generated with at most one code of each of {len(MIXES_UP)} families, and two models predict by a known law: "
        "each code is right, or taken for a given sibling, or missed, or has a sibling beside it, with given "
        "probabilities, and codes are invented where the family is absent. From the law the true "
        "answers to both questions follow."
    )
    rng = np.random.default_rng(SEED)
    actual = draw_actual(MIXES_UP, documents, rng)
    evaluations: dict[str, FamilyEvaluation] = {}
    frames = []
    for name, laws in MODELS.items():
        evaluation = evaluated(laws, actual, draw_predicted(laws, actual, rng))
        evaluations[name] = evaluation
        frame = recovered(laws, evaluation)
        overall = recovered_metrics(laws, evaluation)
        frames.append(frame.assign(model=name))
        with mlflow.start_run(run_name=name):
            mlflow.log_params({"model": name, "documents": documents, "codes_at_once": 1})
            log_evaluation(evaluation, strict=True)
            mlflow.log_metrics({f"true/{row.metric}": row.true for row in overall.itertuples()})
        study.table(
            f"metrics_{_slug(name)}",
            _said(overall),
            f"Model that {name}: overall metrics",
            digits=4,
        )
    every = pd.concat(frames, ignore_index=True)
    every.to_csv(study.folder / "recovered_all.csv", index=False)
    first = frames[0]
    shown_rows = first[first["code"].isin(IRIDOCYCLITIS)].drop(columns="model")
    caption = f"Model that {next(iter(MODELS))}, family {FAMILY}: every probability"
    study.table("recovered", _said(shown_rows), caption, digits=4)
    groups = every.groupby(["model", "given"], sort=False)
    summary = groups.agg(probabilities=("true", "size"), contained=("contained", "sum")).assign(
        median_distance=groups.apply(
            lambda f: float((f["estimate"] - f["true"]).abs().median()), include_groups=False
        )
    )
    study.table(
        "summary",
        summary,
        "All families: how many of the 95% intervals contain the truth",
        digits=4,
    )
    study.figure(
        "recovery",
        recovery_figure(
            first, f"Model that {next(iter(MODELS))}: what is true, and what is estimated"
        ),
        "Every probability of all four families, by `given_predicted` and `given_actual`.",
    )
    best = evaluations["mixes up siblings"]
    study.text(f"In the product's words: {best.given_predicted(CODE)} {best.given_actual(CODE)}")
    study.figure("code", best.code_figure(CODE), f"The answer for {CODE} as the product draws it.")
    study.figure(
        "family_actual",
        best.family_figure(FAMILY),
        f"Family {FAMILY}, shares given the actual code.",
    )
    study.figure(
        "family_predicted",
        best.family_figure(FAMILY, given="predicted"),
        f"Family {FAMILY}, shares given the predicted code.",
    )
    held, total = int(every["contained"].sum()), len(every)
    recall, confused = (
        [e.metrics[f"family/{n}"] for e in evaluations.values()]
        for n in ("recall_micro", "confusion_share")
    )
    study.text(
        f"Of {total} probabilities {held} are in their 95% interval ({100 * held / total:.1f}%). The two models have "
        f"the same recall ({recall[0]:.3f} and {recall[1]:.3f}), but {100 * confused[0]:.1f}% and "
        f"{100 * confused[1]:.1f}% of their labels are confused within the family: what the source wants to see."
    )
    study.outcome(
        "Given a predicted code; given a gold code",
        reproduced="on generated codes with known confusions",
        near=f"{held} of {total} true probabilities in their 95% interval",
        not_possible="the source shows no numbers, and its data may not be passed on",
    )


def coverage(study: Study) -> None:
    """How often the intervals hold the truth."""
    study.heading("Coverage of the intervals")
    repeats, documents = study.pick(fast=(40, 1000), full=(4000, 2000))
    rounds = study.track(range(repeats), "coverage")
    every, overall = repeated(rounds, MIXES_UP, documents, np.random.default_rng(SEED + 1))
    lines = every.groupby(["given", "kind"], sort=False)["contained"].agg(
        coverage="mean", intervals="size"
    )
    caption = (
        f"Share of 95% intervals that contain the truth, {repeats} repeats of {documents} documents"
    )
    study.table("coverage", lines, caption, digits=4)
    metrics = overall.groupby("metric", sort=False)["contained"].agg(
        coverage="mean", repeats="size"
    )
    study.table("coverage_metrics", metrics, "The same of the overall metrics", digits=4)
    by_cell = every.groupby(["given", "code", "outcome"])["contained"].mean()
    share = float(every["contained"].mean())
    study.text(
        f"Together {100 * share:.2f}% of {len(every):,} intervals hold the truth. Single probabilities have between "
        f"{100 * by_cell.min():.1f}% and {100 * by_cell.max():.1f}%."
    )
    study.outcome(
        "Intervals of the answers",
        reproduced="added, by the product",
        near=f"{100 * share:.1f}% of 95% intervals contain the truth ({repeats} repeats)",
        not_possible="none published",
    )


def several_codes(study: Study) -> None:
    """Where a document has several codes of a family, pairs can no longer be known."""
    study.heading("Several codes of a family in a document: what no rule can know")
    documents = study.pick(fast=3000, full=50_000)
    rng = np.random.default_rng(SEED + 2)
    law = MIXES_UP[0]
    parts = []
    for at_once in study.track((1, 2, 3), "several codes of a family"):
        evaluation = simulated([law], documents, rng, at_once=at_once)
        parts.append(shares_at_once(law, evaluation, at_once))
    frame = pd.concat(parts, ignore_index=True)
    with mlflow.start_run(run_name="three codes of the family at once"):
        mlflow.log_params(
            {"model": "mixes up siblings", "documents": documents, "codes_at_once": at_once}
        )
        log_evaluation(evaluation, strict=True)
    study.table(
        "several", frame, f"Family {FAMILY}: shares of actual codes, mean over codes", digits=4
    )
    study.figure(
        "several",
        several_codes_figure(frame, f"Family {FAMILY}: the law, and what documents show"),
        "With several codes of the family in a document, a confusion with one that is actual, too, cannot be seen.",
    )
    of = frame.set_index(["at_once", "outcome"])["estimate"]
    true = frame.set_index("outcome")["law"].groupby(level=0).first()
    study.text(
        "With one code of the family in a document the rules find the law. With several, a code that is taken for a "
        "sibling which is actual, too, makes that sibling right, and is itself out of family: "
        f"with {at_once} at once {of[at_once, 'right']:.3f} of the codes are right instead of {true['right']:.3f}, "
        f"{of[at_once, SIBLING]:.3f} confused instead of {true[SIBLING]:.3f}. No rule can tell these apart, since "
        "the documents do not say which prediction meant which code. What is estimated without error is what the "
        "documents show: recall and precision of each code."
    )
    table = diagonals(evaluation, FAMILY)
    study.table(
        "diagonals",
        table,
        f"The same documents ({at_once} at once): recall, and the two diagonals",
        digits=4,
    )
    exact = float((table["recall"] - table.iloc[:, 2]).abs().max())
    far = float((table["recall"] - table.iloc[:, 3]).abs().max())
    study.text(
        f"With weight 1 for each code the diagonal is recall (largest difference {exact:.1e}). The share of product "
        f"counts is not: it is up to {far:.3f} away, since codes with many possible partners count more often."
    )
    study.outcome(
        "1-to-1 correspondence",
        reproduced="shown for matches only",
        near=f"law recovered with one code of a family per document (right {of[1, 'right']:.3f}, law "
        f"{true['right']:.3f}); with {at_once}: {of[at_once, 'right']:.3f}",
        not_possible="pairs of several mismatches of a family cannot be known from weak labels",
    )


def _said(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(contained=np.where(frame["contained"], "yes", "no"))


def _slug(name: str) -> str:
    return name.replace(" ", "_")


if __name__ == "__main__":
    study_command("family_confusion", TITLE, SOURCE, main)()
