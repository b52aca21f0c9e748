"""
What can these attributes predict?
==================================

Rough sets: six television sets, four attributes, and whether their decision is high or low. Which decisions do the
attributes settle, and what would a confusion matrix alone say of it? The table is Table 3 of Düntsch, I. and Gediga, G.
(2019), Confusion matrices and rough set data analysis, arXiv:1902.01487.
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
# The paper says that Price and Screen put the sets 1 and 6 into one granule, but their screens differ: the partition
# that it goes on with is that of Price and Sound.
table = granule_table(sets, sets["d"], attributes=["Price", "Sound"])
print(table, table.to_frame(), sep="\n\n")

# %%
# Which decisions are certain, and which only possible.
exact = table.approximations()
print(exact, exact.to_frame(), sep="\n\n")
exact.figure().savefig("rough_decision_table.png")

# %%
# The same from a confusion matrix. With the granules known the condition of its bounds is checked; from the matrix
# alone, as in every evaluation, it is assumed. ``table.classifier(sets, y_pred)`` takes the predictions of a model.
classifier = table.majority()
print(table.confusion_matrix(classifier).to_frame(), end="\n\n")
print(table.bounds(classifier), rough_bounds(table.confusion_matrix(classifier)), sep="\n\n")
