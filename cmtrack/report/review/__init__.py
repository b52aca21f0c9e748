"""The review of a comparison: its decision in words, as tables, figures, a report and a run."""
