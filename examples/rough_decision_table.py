"""Rough sets: a decision table, what its attributes can tell, and what a confusion matrix alone would say of it.

Run it with `python examples/rough_decision_table.py`. The table is Table 3 of Düntsch, I. and Gediga, G. (2019),
Confusion matrices and rough set data analysis, arXiv:1902.01487: six television sets and whether their decision is
high or low.
"""

import pandas as pd

from cmtrack import attribute_subsets, granule_table, rough_bounds

sets = pd.DataFrame(
    {
        "Price": ["high", "low", "low", "medium", "medium", "high"],
        "Guarantee": ["24 months", "6 months", "12 months", "12 months", "18 months", "12 months"],
        "Sound": ["Stereo", "Mono", "Stereo", "Stereo", "Stereo", "Stereo"],
        "Screen": [76, 66, 36, 51, 51, 51],
        "d": ["high", "low", "low", "high", "high", "low"],
    },
    index=pd.RangeIndex(1, 7, name="Type"),
)
attributes = ["Price", "Guarantee", "Sound", "Screen"]

# The paper says that Price and Screen put the sets 1 and 6 into one granule, but their screens differ: the partition
# that it goes on with is that of Price and Sound.
table = granule_table(sets, sets["d"], attributes=["Price", "Sound"])
print(table, table.to_frame(), sep="\n\n", end="\n\n")

exact = table.approximations()
print(exact, exact.to_frame(), sep="\n\n", end="\n\n")

classifier = table.majority()  # or table.classifier(sets, y_pred) for the predictions of a model
print(table.confusion_matrix(classifier).to_frame(), end="\n\n")
print(table.bounds(classifier), end="\n\n")  # the granules are known: the condition is checked
print(rough_bounds(table.confusion_matrix(classifier)), end="\n\n")  # from the matrix alone, as in every evaluation

subsets = attribute_subsets(sets, sets["d"], attributes=attributes)
print(subsets, subsets.to_frame().to_string(), sep="\n\n")

exact.figure().savefig("rough_decision_table.png")
