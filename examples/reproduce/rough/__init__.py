"""The parts of Düntsch and Gediga (2019): their example, their formulas as printed, and random granule tables."""
