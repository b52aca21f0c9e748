"""Loading of stored evaluations of any kind."""

from __future__ import annotations

from cmtrack import archive
from cmtrack.base import BaseEvaluation
from cmtrack.evaluation.result import Evaluation
from cmtrack.families.result import FamilyEvaluation

_KINDS: dict[str, type[BaseEvaluation]] = {
    Evaluation.kind: Evaluation,
    FamilyEvaluation.kind: FamilyEvaluation,
}


def loads(text: str) -> BaseEvaluation:
    """Parse the stored text of an evaluation of any kind."""
    data = archive.parse(text)
    kind = data.get("kind", archive.CLASSES)
    if kind not in _KINDS:
        raise ValueError(
            f"the kind of the evaluation is {kind!r}, but this version reads only "
            f"{list(_KINDS)}: upgrade cmtrack"
        )
    return _KINDS[kind].from_data(data)
