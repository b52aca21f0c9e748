"""Four families of codes, and two models of them that err in different ways."""

from __future__ import annotations

from discharge_codes.laws import FamilyLaw

IRIDOCYCLITIS = tuple(f"364.{k:02}" for k in range(5))
GLAUCOMA = ("365.01", "365.02")
HYPERTENSION = ("401.0", "401.1", "401.9")
ASTHMA = ("493.00", "493.10", "493.20", "493.90")

MIXES_UP = (
    FamilyLaw(
        IRIDOCYCLITIS, 0.5, (0.3, 0.25, 0.2, 0.15, 0.1), (0.80, 0.55, 0.70, 0.60, 0.75),
        confused={
            ("364.00", "364.01"): 0.12, ("364.01", "364.00"): 0.20, ("364.01", "364.02"): 0.15,
            ("364.02", "364.03"): 0.18, ("364.03", "364.01"): 0.25, ("364.04", "364.00"): 0.15,
        },
        extra={("364.02", "364.03"): 0.10}, spurious=0.06,
    ),
    FamilyLaw(
        GLAUCOMA, 0.3, (0.6, 0.4), (0.70, 0.65),
        confused={("365.01", "365.02"): 0.20, ("365.02", "365.01"): 0.30}, spurious=0.04,
    ),
    FamilyLaw(
        HYPERTENSION, 0.7, (0.1, 0.2, 0.7), (0.50, 0.55, 0.85),
        confused={("401.0", "401.9"): 0.35, ("401.1", "401.9"): 0.40, ("401.9", "401.1"): 0.08}, spurious=0.15,
    ),
    FamilyLaw(
        ASTHMA, 0.4, (0.15, 0.15, 0.2, 0.5), (0.45, 0.60, 0.70, 0.80),
        confused={("493.00", "493.90"): 0.40, ("493.10", "493.90"): 0.30, ("493.20", "493.90"): 0.15}, spurious=0.08,
    ),
)  # fmt: skip
"""Wrong codes are mostly siblings."""

MISSES = (
    FamilyLaw(
        IRIDOCYCLITIS,
        0.5,
        (0.3, 0.25, 0.2, 0.15, 0.1),
        (0.80, 0.55, 0.70, 0.60, 0.75),
        confused={("364.00", "364.01"): 0.03, ("364.01", "364.00"): 0.05},
        spurious=0.20,
    ),
    FamilyLaw(
        GLAUCOMA,
        0.3,
        (0.6, 0.4),
        (0.70, 0.65),
        confused={("365.02", "365.01"): 0.05},
        spurious=0.12,
    ),
    FamilyLaw(HYPERTENSION, 0.7, (0.1, 0.2, 0.7), (0.50, 0.55, 0.85), spurious=0.40),
    FamilyLaw(
        ASTHMA,
        0.4,
        (0.15, 0.15, 0.2, 0.5),
        (0.45, 0.60, 0.70, 0.80),
        confused={("493.00", "493.90"): 0.06},
        spurious=0.20,
    ),
)
"""As often right with the same codes, but wrong codes are of no family that the document has."""

MODELS = {"mixes up siblings": MIXES_UP, "misses and invents": MISSES}
