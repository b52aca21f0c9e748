"""Words, the list of figures, and pages of an evaluation and of a comparison."""
