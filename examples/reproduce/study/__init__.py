"""What the reproductions share: a study with its two modes, its store, its progress and its report."""

from study.beside import Spread, beside, nearness
from study.under_way import Study, mode_options, prepare_store, study_command

__all__ = [
    "Spread",
    "Study",
    "beside",
    "mode_options",
    "nearness",
    "prepare_store",
    "study_command",
]
