"""The parts of family-wise confusion: the published figures, and discharge codes whose confusions are known."""
