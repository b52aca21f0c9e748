"""Section 1.3.2 in the report: Figure 1.9, Tables 1.6 and 1.7."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cmtrack.plots import plot_spcc_matrix
from correlation import figures, modes, multiclass, three_classes
from correlation import published as known
from correlation.data import three_normals
from correlation.three_classes import Barely
from study import Study, nearness
from study.beside import NOTE


def table_1_6(study: Study) -> None:
    study.heading("Three normal classes: Figure 1.9, Tables 1.6 and 1.7")
    sample = three_normals(np.random.default_rng(0), modes.class_sizes(study))
    drawing = figures.dimension_histograms(
        sample, [f"class {k}" for k in (1, 2, 3)], "Figure 1.9: three normal classes"
    )
    study.figure(
        "figure_1_9",
        drawing,
        "Figure 1.9: each class stands apart from the others in one dimension.",
    )
    study.outcome(
        "Figure 1.9", reproduced="the three classes by dimension", near="same distributions"
    )
    trials = three_classes.run(study, repeats=modes.repeats(study))
    networks = three_classes.barely_trained(study, networks=modes.networks(study))
    barely = pd.DataFrame([one.numbers for one in networks])
    note = NOTE.format(n=f"{modes.repeats(study)} ({len(networks)} for one epoch)")
    study.table(
        "table_1_6", three_classes.table(trials, barely), f"Table 1.6: three classes; {note}"
    )
    hits = multiclass.few_hits(3).metrics
    constant = len(trials["NN"]) - len(trials["NN (cal.)"])
    published = known.TABLE_1_6["NN"]
    few = barely[["BA"]].lt(0.34).mean().iloc[0]
    study.text(
        f"The source leaves the SVM out because it takes long to train; it is added here. In {constant} of "
        f"{modes.repeats(study)} repeats the trained network gives every row the same probabilities, because its ReLU "
        f"neurons are dead; these are in its means, and are not calibrated.",
        f"The published network labels nearly everything class 1: three rows of class 2 that are labelled so, and "
        f"nothing else, give accuracy {hits['multiclass/accuracy']:.4f}, balanced accuracy "
        f"{hits['multiclass/balanced_accuracy']:.4f} and MCC {hits['multiclass/matthews_corrcoef']:.4f}, exactly as "
        f"published ({published['Accuracy']}, {published['BA']}, {published['MCC']}). Of our networks after one epoch, "
        f"{few:.0%} have a balanced accuracy below 0.34; trained longer they have "
        f"{trials['NN']['BA'].mean():.4f} on average.",
        f"Its AUROC is given as {published['AUROC-OvR']} for one-vs-rest and one-vs-one alike. These are means over "
        f"other comparisons; among our one-epoch networks they differ by "
        f"{(barely['AUROC-OvR'] - barely['AUROC-OvO']).abs().median():.4f} in the median.",
    )
    claims(study)
    columns = [c for c in known.TABLE_1_6 if c != "NN"]
    means = pd.DataFrame({c: trials[c].mean() for c in columns})
    study.outcome(
        "Table 1.6",
        reproduced="three machines and the SVM, plain and calibrated",
        near=nearness(means, known.TABLE_1_6[columns], digits=4) + " without the network",
        not_possible="the network's column: its training is not described; its one-vs-one sPCC does not follow from "
        "Table 1.7",
    )
    table_1_7(study, three_classes.nearest(networks))


def claims(study: Study) -> None:
    """Two statements of section 1.3.2 that Table 1.6 itself does not bear out."""
    table = known.TABLE_1_6
    higher = [c for c in table if table.loc["sPCC-OvO", c] > table.loc["sPCC-OvR", c]]
    study.text(
        f"“The OvO variant scores higher than the OvR variant” holds in Table 1.6 for {', '.join(higher)} only, and "
        f"“all machines perform well” does not hold for a network with a balanced accuracy of {table.loc['BA', 'NN']}: "
        f"a constant answer has {1 / 3:.4f}."
    )


def table_1_7(study: Study, network: Barely) -> None:
    ours = network.evaluation
    names = [f"class {k}" for k in multiclass.CLASSES]
    study.table(
        "table_1_7",
        three_classes.matrix_table(ours.spcc_matrix, known.TABLE_1_7_OVO),
        "Table 1.7, one-vs-one: the one-epoch network of ours that is nearest, published in brackets",
    )
    study.figure(
        "table_1_7",
        plot_spcc_matrix(
            known.TABLE_1_7_OVO, names, title="Table 1.7 as published, one-vs-one sPCC"
        ),
        "Table 1.7 as cmtrack draws such a matrix: dark cells are pairs that get confused.",
    )
    matrix = np.array(known.TABLE_1_7_OVO)
    entries = matrix[~np.eye(3, dtype=bool)]
    rest = multiclass.fisher_mean(np.array(known.TABLE_1_7_OVR))
    pairs = multiclass.fisher_mean(entries)
    published = known.TABLE_1_6["NN"]
    variants = {
        "Fisher's average": pairs,
        "arithmetic mean": float(entries.mean()),
        "median": float(np.median(entries)),
        "Fisher's average of absolute values": multiclass.fisher_mean(np.abs(entries)),
        "Fisher's average, negative entry as 0": multiclass.fisher_mean(np.maximum(entries, 0)),
    }
    study.table(
        "one_vs_one_summaries",
        pd.DataFrame(list(variants.items()), columns=["summary of the six entries", "value"]),
        f"What the six one-vs-one entries give; published is {published['sPCC-OvO']}",
        digits=6,
    )
    ovr = [ours.metrics[f"spcc/ovr/{k}"] for k in multiclass.CLASSES]
    needed = multiclass.needed_entry(published["sPCC-OvO"])
    study.text(
        f"One-vs-rest, ours: {', '.join(f'{v:.4f}' for v in ovr)}; published: "
        f"{', '.join(f'{v:.4f}' for v in known.TABLE_1_7_OVR)}.",
        f"The one-vs-rest entries of Table 1.7 have a Fisher's average of {rest:.6f}, as published in Table 1.6 "
        f"({published['sPCC-OvR']}). The one-vs-one entries have {pairs:.6f}, not {published['sPCC-OvO']}. For that, "
        f"the entry of class 3 against class 1 would have to be {needed:.4f} instead of {matrix[2, 0]}: the value or "
        f"an entry is wrong.",
        f"A Fisher's average hides one bad class: the smallest entry is {min(known.TABLE_1_7_OVR)} (one-vs-rest) and "
        f"{entries.min()} (one-vs-one). cmtrack reports the minimum beside it (`spcc/ovr_min`, `spcc/ovo_min`).",
    )
    study.outcome(
        "Table 1.7",
        reproduced="one-vs-rest average exactly; the matrix of a like network",
        near=f"one-vs-rest {rest:.4f}, published {published['sPCC-OvR']}; one-vs-one {pairs:.4f}, published "
        f"{published['sPCC-OvO']}",
        not_possible=f"one-vs-one {published['sPCC-OvO']}: needs an entry of {needed:.4f} where {matrix[2, 0]} is "
        "printed",
    )
