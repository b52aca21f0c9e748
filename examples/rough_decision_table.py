"""
What can these attributes predict?
==================================

This example is about rough sets: six television sets, four attributes, and a decision that is high or low. Which
decisions follow from the attributes, and what could you conclude from a confusion matrix alone? The table is Table 3 of
Düntsch, I. and Gediga, G. (2019), Confusion matrices and rough set data analysis, arXiv:1902.01487.
"""

import pandas as pd

from cmtrack import granule_table, rough_bounds

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

# %%
# The paper says that Price and Screen put the sets 1 and 6 into one granule, but their screens differ. The partition
# that the paper goes on to use belongs to Price and Sound.
table = granule_table(sets, sets["d"], attributes=["Price", "Sound"])
print(table, table.to_frame(), sep="\n\n")

# %%
# Which decisions are certain, and which are only possible?
exact = table.approximations()
print(exact, exact.to_frame(), sep="\n\n")
exact.figure().savefig("rough_decision_table.png")

# %%
# The bounds by a confusion matrix. With the granules, cmtrack checks the condition of the bounds. From the matrix alone,
# as in every evaluation, it assumes the condition. ``table.classifier(sets, y_pred)`` takes the predictions of a model.
classifier = table.majority()
print(table.confusion_matrix(classifier).to_frame(), end="\n\n")
print(table.bounds(classifier), rough_bounds(table.confusion_matrix(classifier)), sep="\n\n")
