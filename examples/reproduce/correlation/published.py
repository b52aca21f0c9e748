"""Every number of chapter 1 of Gubbels (2023) that is compared with ours, as printed."""

from __future__ import annotations

import pandas as pd

MACHINES = ("SVM", "LogReg", "RFC", "NN")
COLUMNS = [name + kind for name in MACHINES for kind in ("", " (cal.)")]
ROWS = ["sPCC", "Accuracy", "BA", "MCC", "AUROC", "Bias"]


def _table(*rows: list[float]) -> pd.DataFrame:
    return pd.DataFrame(rows, index=ROWS, columns=COLUMNS)


TABLE_1_1 = _table(
    [1.0, 1.0, 0.9999, 1.0, 1.0, 1.0, 0.9909, 1.0],
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9946, 1.0],
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.997, 1.0],
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.9711, 1.0],
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    [0.0001, 0.0, -0.0, 0.0, 0.0, 0.0, 0.3755, 0.0],
)
"""Normally distributed data."""

TABLE_1_2 = _table(
    [0.856, 0.8559, 0.8343, 0.8498, 0.917, 0.9267, 0.4529, 0.0000],
    [0.9712, 0.97, 0.9662, 0.9702, 0.987, 0.987, 0.9000, 0.9068],
    [0.8924, 0.9122, 0.9208, 0.8919, 0.9457, 0.9466, 0.5000, 0.5340],
    [0.8329, 0.8319, 0.8181, 0.8275, 0.9261, 0.9261, 0.0000, 0.2482],
    [0.9368, 0.9545, 0.9792, 0.9662, 0.9652, 0.965, 0.9792, 0.5000],
    [0.0185, -0.0021, -0.0141, -0.0116, -0.0516, -0.0081, 2.8372, -0.1000],
)
"""Non-normally distributed data."""

TABLE_1_3 = _table(
    [0.9959, 0.996, 0.9955, 0.9949, 0.9949, 0.993, 0.9945, 0.9938],
    [0.998, 0.998, 0.9975, 0.9975, 0.9965, 0.997, 0.9965, 0.9965],
    [0.998, 0.998, 0.9975, 0.9975, 0.9965, 0.997, 0.9965, 0.9965],
    [0.996, 0.996, 0.995, 0.995, 0.993, 0.994, 0.993, 0.993],
    [0.9999, 0.9985, 0.9999, 0.9984, 1.0, 0.9995, 0.9995, 0.9985],
    [0.001, 0.001, 0.0007, 0.0013, 0.0004, -0.0005, 0.0005, 0.0003],
)
"""Fashion-MNIST, bags and ankle boots."""

TABLE_1_4 = _table(
    [0.7796, 0.7765, 0.7335, 0.7292, 0.778, 0.7349, 0.7206, 0.7209],
    [0.862, 0.859, 0.8335, 0.831, 0.862, 0.862, 0.8305, 0.8305],
    [0.862, 0.859, 0.8335, 0.831, 0.862, 0.862, 0.8305, 0.8305],
    [0.7241, 0.7182, 0.6672, 0.6621, 0.7246, 0.7246, 0.6612, 0.6622],
    [0.9393, 0.9392, 0.9179, 0.918, 0.942, 0.9263, 0.9107, 0.9107],
    [0.0035, 0.0108, -0.0012, 0.0085, 0.0044, -0.024, 0.0418, 0.0302],
)
"""Fashion-MNIST, T-shirts and shirts."""

PROPERTIES = [
    "1 handles extreme imbalance",
    "2 takes probabilities",
    "3 not heavily influenced by sampling errors",
]
TABLE_1_5 = pd.DataFrame(
    [
        ["yes", "no", "no", "yes", "unclear"],
        ["yes", "no", "no", "no", "yes"],
        ["yes", "no", "no", "yes", "no"],
    ],
    index=PROPERTIES,
    columns=["sPCC", "Accuracy", "BA", "MCC", "AUROC"],
)

MULTICLASS_ROWS = ["sPCC-OvR", "sPCC-OvO", "Accuracy", "BA", "MCC", "AUROC-OvR", "AUROC-OvO"]
TABLE_1_6 = pd.DataFrame(
    [
        [0.9999, 0.999, 0.7871],
        [0.9998, 0.9986, 0.8351],
        [1.0, 1.0, 0.8069],
        [1.0, 1.0, 0.3343],
        [1.0, 1.0, 0.0451],
        [1.0, 1.0, 0.771],
        [1.0, 1.0, 0.771],
    ],
    index=MULTICLASS_ROWS,
    columns=["LogReg", "RFC", "NN"],
)

TABLE_1_7_OVR = [0.9237, 0.9145, 0.0231]
TABLE_1_7_OVO = [[0.0, 0.9234, 0.5793], [0.9436, 0.0, 0.9486], [-0.1916, 0.8803, 0.0]]

LOG_NORMAL_SPCC = 0.6111
LOG_NORMAL_AUROC = 1.0
"""Section 1.2.3, the text under Figure 1.5."""

TEXT_NETWORK_AUROC = 0.9407
"""Section 1.2.3, the text under Table 1.2: the network's AUROC."""

F1_EXAMPLE = {"precision": 0.5, "F1": 0.667}
"""Section 1.1: 0.5% positives, all found, 0.5% of the negatives wrong."""
