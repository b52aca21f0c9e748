"""The :class:`FamilyEvaluation` class, and functions that store and read its documents.

An evaluation is stored as JSON text with a format version. The text contains the statistics from
which all numbers are computed, and also the numbers themselves, so that other programs can read
them. A compact Parquet file stores the tallies of each document.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cmtrack import archive
from cmtrack._lazy import cached_property
from cmtrack.archive import checked_table, write_table
from cmtrack.base import BaseEvaluation
from cmtrack.digits import count, significant
from cmtrack.families import metrics as metrics_of
from cmtrack.families.counts import (
    ACTUAL,
    MACROS,
    TALLIES,
    DocumentRows,
    FamilyStatistics,
)
from cmtrack.families.hierarchy import Families
from cmtrack.families.spec import FamilySpec
from cmtrack.families.tables import (
    CodeAnswer,
    FamilyMatrix,
    answer,
    code_table,
    family_distribution,
    family_matrix,
    family_table,
)
from cmtrack.grouping import Label
from cmtrack.metrics.catalog import Catalog
from cmtrack.metrics.results import Results
from cmtrack.statistics.inputs import FloatArray
from cmtrack.untrusted import for_page

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class FamilyEvaluation(BaseEvaluation):
    """Evaluation of predicted sets of codes, as returned by :func:`cmtrack.evaluate_families`.

    Attributes
    ----------
    statistics : FamilyStatistics
        The statistics of the documents, from which all numbers are computed.
    spec : FamilySpec
        The options of the evaluation.
    remarks : tuple of str
        Remarks recorded while reading the data.
    macro_errors : dict of str to float, optional
        Standard errors of the macro averages, with documents as the sampling units.
    rows : DocumentRows or None
        Numbers stored for each individual document; paired comparisons require them. None if the
        evaluation was not computed from documents. These numbers are dropped if evaluations are
        merged, and they are ignored when evaluations are tested for equality.

    Examples
    --------
    >>> from cmtrack import Prefix, evaluate_families
    >>> actual = [{"364.0", "401.9"}, {"250.0"}]
    >>> predicted = [{"364.1", "401.9"}, {"250.0", "401.1"}]
    >>> evaluation = evaluate_families(actual, predicted, Prefix(separator="."))
    >>> evaluation.codes, evaluation.families
    (('250.0', '364.0', '364.1', '401.1', '401.9'), ('250', '364', '401'))
    >>> evaluation.n_samples, round(evaluation.metrics["family/f1_micro"], 3)
    (2.0, 0.571)
    """

    statistics: FamilyStatistics
    spec: FamilySpec
    remarks: tuple[str, ...] = ()
    macro_errors: dict[str, float] | None = None
    rows: DocumentRows | None = field(default=None, repr=False, compare=False)
    kind = archive.FAMILIES
    first_metrics = metrics_of.FIRST
    unit = "document"

    @property
    def catalog(self) -> Catalog:
        """The catalog that defines the metrics of label sets."""
        return Catalog(metrics_of.OF_FAMILIES)

    @property
    def matching(self) -> str:
        """The default matching for :meth:`matrix`: "product", "row", "column" or "balanced"."""
        return self.spec.matching

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks recorded while reading the data."""
        return self.remarks

    # -- numbers ----------------------------------------------------------------------------------

    @cached_property
    def _results(self) -> Results:
        return metrics_of.family_results(self.statistics, self.confidence_level, self.macro_errors)

    @cached_property
    def warnings_by_section(self) -> tuple[tuple[str, str], ...]:
        """Warnings about rare codes, rare families, undefined ratios and repeated codes."""
        warnings = (*self.notes, *metrics_of.family_warnings(self.statistics))
        return tuple(("", warning) for warning in warnings)

    # -- parts ------------------------------------------------------------------------------------

    @property
    def codes(self) -> tuple[Label, ...]:
        """All codes, ordered so that the codes of a family are next to each other."""
        return self.statistics.families.codes

    @property
    def families(self) -> tuple[Label, ...]:
        """The families in order."""
        return self.statistics.families.names

    def family_of(self, code: Label) -> Label:
        """Return the family of a code.

        Raises
        ------
        KeyError
            If there is no such code.
        """
        families = self.statistics.families
        return families.names[int(families.family_of_code[families.place(code)])]

    @property
    def sizes(self) -> dict[str, int]:
        """The number of families and the number of codes."""
        return {"families": len(self.families), "codes": len(self.codes)}

    @property
    def n_samples(self) -> float:
        """Number of documents."""
        return float(self.statistics.digest.rows)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The codes."""
        return self.codes

    def classes_passed_over(self, metric: str) -> tuple[Label, ...]:
        """Return the actual codes that an average ignores because they are never predicted."""
        if metric != "family/precision_macro":
            return ()
        return tuple(self.codes[i] for i in metrics_of.never_predicted(self.statistics))

    @property
    def design(self) -> tuple[tuple[str, str], ...]:
        """Property that all runs in a ranking must share: the families of the actual codes."""
        families = self.statistics.families
        actual = np.flatnonzero(self.statistics.codes[:, ACTUAL])
        paths = [families.paths[k] for k in actual.tolist()]
        return (("families", _digest_of_paths(sorted(paths, key=str), families.level)),)

    # -- views of a family and of a code ----------------------------------------------------------

    def matrix(self, family: Label, matching: str | None = None) -> FamilyMatrix:
        """Return the confusion matrix of a family: rows are actual and columns are predicted codes.

        The last row and the last column count codes that are out of family (OOF).

        Parameters
        ----------
        family : label
        matching : "product", "row", "column" or "balanced", optional
            The matching to use; by default the matching of the evaluation.

        Raises
        ------
        KeyError, ValueError
            If there is no such family or matching.
        """
        return family_matrix(self.statistics, family, matching or self.matching)

    def distribution(
        self, family: Label, given: str = "predicted", normalization: str = "mass"
    ) -> FamilyMatrix:
        """Return a family's distributions of actual codes given predicted codes, or vice versa.

        Parameters
        ----------
        family : label
        given : "predicted" or "actual"
            The side on which the distributions are conditioned. With "predicted", columns sum to 1
            and the diagonal contains precisions. With "actual", rows sum to 1 and the diagonal
            contains recalls.
        normalization : "mass" or "reference"
            With "mass", each code of a document has the mass 1. With "reference", the counts of the
            product matching are divided by their sum, as in the source's code. Documents with many
            mismatches then have more weight, and the diagonal contains neither precisions nor
            recalls.

        Raises
        ------
        KeyError, ValueError
            If there is no such family, direction or normalisation.
        """
        return family_distribution(self.statistics, family, given, normalization)

    def given_predicted(self, code: Label) -> CodeAnswer:
        """Return the share of each outcome of a predicted code: correct, sibling, or out of family.

        Raises
        ------
        KeyError
            If there is no such code.

        Examples
        --------
        >>> from cmtrack import Prefix, evaluate_families
        >>> by_dot = Prefix(separator=".")
        >>> evaluation = evaluate_families([["364.0"], ["364.1"]], [["364.1"], ["364.1"]], by_dot)
        >>> answer = evaluation.given_predicted("364.1")
        >>> answer.documents, answer.right, answer.siblings
        (2, 0.5, (('364.0', 0.5),))
        """
        return answer(self.statistics, code, "predicted", self.confidence_level)

    def given_actual(self, code: Label) -> CodeAnswer:
        """Return the share of each outcome of an actual code: correct, sibling, or out of family.

        Raises
        ------
        KeyError
            If there is no such code.
        """
        return answer(self.statistics, code, "actual", self.confidence_level)

    def family_figure(self, family: Label, given: str = "actual") -> Figure:
        """Draw the confusion matrix of a family, coloured by shares.

        With "actual", the shares are conditional on the actual code, and the diagonal shows recall.
        With "predicted", they are conditional on the predicted code, and the diagonal shows
        precision.

        Raises
        ------
        KeyError, ValueError
            If there is no such family or direction.
        """
        from cmtrack import plots

        return plots.family_matrix_figure(self, family, given=given)

    def code_figure(self, code: Label) -> Figure:
        """Plot what happens when a code is predicted, and when it is the true code.

        Raises
        ------
        KeyError
            If there is no such code.
        """
        from cmtrack import plots

        return plots.code_figure(self, code)

    def code_table(self) -> pd.DataFrame:
        """Return one row per code: family, documents, precision, recall, F1, shares and partners.

        For predicted codes and for actual codes, the shares ``match``, ``confused`` and ``oof`` sum
        to 1. ``partner`` is the sibling that most often replaces the code, or the first of several
        equally frequent siblings.
        """
        return code_table(self.statistics)

    def family_table(self) -> pd.DataFrame:
        """Return a frame with one row per family, containing the metrics and their intervals."""
        return family_table(self.statistics, self._results)

    # -- doing ------------------------------------------------------------------------------------

    @property
    def _documents(self) -> DocumentRows:
        """The numbers stored for each individual document."""
        if self.rows is None:
            raise ValueError("this evaluation was merged or loaded without its documents")
        return self.rows

    def _answers_to(self, metric: str) -> npt.NDArray[Any] | None:
        if self.catalog.lookup(metric).of != "documents":
            return None
        # Sums with random weights differ for different tallies and are equal for equal tallies.
        tallies = self._documents.tallies
        return tallies @ np.random.default_rng(0).random(tallies.shape[1])

    def _influence_of(self, metric: str) -> FloatArray | None:
        views = metrics_of.FamilyViews(self.statistics)
        return views.influence(self.catalog.lookup(metric), self._documents)

    def __add__(self, other: FamilyEvaluation) -> FamilyEvaluation:
        """Merge the evaluations of two disjoint sets of documents; counts add up exactly."""
        if not isinstance(other, FamilyEvaluation):
            return NotImplemented
        merged = replace(
            self,
            spec=self.spec.merged(other.spec, "evaluations"),
            statistics=self.statistics + other.statistics,
            remarks=tuple(dict.fromkeys((*self.remarks, *other.remarks))),
            macro_errors=None,
            rows=None,
        )
        return replace(merged, macro_errors=_merged_errors(self, other, merged))

    def _stored(self) -> dict[str, Any]:
        families = self.statistics.families
        return {
            "families": {
                "level": families.level,
                "chosen": families.chosen,
                "paths": families.paths,
            },
            **self.spec.to_plain(),
            "notes": list(self.remarks),
            "macro_errors": self.macro_errors,
        }

    @classmethod
    def _fields_of(cls, data: dict[str, Any]) -> dict[str, Any]:
        families = _families(data["families"])
        errors = data["macro_errors"]
        if errors is not None:
            errors = {str(name): float(value) for name, value in errors.items()}
        return {
            "statistics": FamilyStatistics.from_plain(data["statistics"], families),
            "spec": FamilySpec.from_plain({name: data[name] for name in FamilySpec.entries()}),
            "remarks": tuple(map(str, data["notes"])),
            "macro_errors": errors,
        }

    def without_probabilities(self) -> FamilyEvaluation:
        """Return the evaluation itself, because no probabilities are stored for documents."""
        return self

    @property
    def rows_size(self) -> int:
        """Size in bytes of the columns that describe the documents, before compression."""
        if self.rows is None:
            return 0
        return self.rows.tallies.nbytes + self.rows.macros.nbytes

    def write_rows(self, file: Path | BinaryIO) -> None:
        """Write the numbers stored for each document to a Parquet file."""
        write_documents(file, self._documents)

    def with_rows(self, content: bytes) -> FamilyEvaluation:
        """Return the evaluation with the documents from a file that :meth:`write_rows` wrote."""
        return replace(self, rows=read_documents(content, self))

    # -- views ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        documents = f"{count(self.n_samples)} documents"
        codes = f"{len(self.codes)} codes in {len(self.families)} families"
        f1 = significant(self.metrics["family/f1_micro"])
        confused = significant(self.metrics["family/confusion_share"])
        outside = significant(self.metrics["family/oof_share"])
        shares = f"micro F1 {f1}, confused {confused}, out of family {outside}"
        return f"FamilyEvaluation({documents}, {codes}: {shares})"

    def _repr_html_(self) -> str:
        frame = self.to_frame().drop(columns="undefined")
        headline = frame[frame["metric"].isin(self.headline)]
        return for_page(headline.to_html(index=False, float_format="{:.4f}".format))


def _merged_errors(
    first: FamilyEvaluation, second: FamilyEvaluation, merged: FamilyEvaluation
) -> dict[str, float] | None:
    """Return standard errors of the macro averages after merging two sets of documents.

    Each standard error is the larger of two estimates. The first estimate combines the sums of
    squares of both sets. It accounts for codes that occur in the same document, but it is too small
    if one set contains few documents with a code. The second estimate is computed from the merged
    counts and assumes independent codes.
    """
    if first.macro_errors is None or second.macro_errors is None:
        return None
    errors = {}
    for name, first_error in first.macro_errors.items():
        if name in second.macro_errors:
            second_sum = second.macro_errors[name] * second.n_samples
            squares = math.hypot(first_error * first.n_samples, second_sum)
            by_document = squares / (first.n_samples + second.n_samples)
            errors[name] = max(by_document, merged.standard_errors.get(name, 0.0))
    return errors


# -- stored form ----------------------------------------------------------------------------------


def _digest_of_paths(paths: Iterable[tuple[Any, ...]], level: int) -> str:
    """Return a short digest of the codes' paths and of the level that defines families."""
    text = json.dumps([level, [[str(node) for node in path] for path in paths]])
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _families(data: dict[str, Any]) -> Families:
    paths = tuple(tuple(path) for path in data["paths"])
    if not paths or not all(paths):
        raise ValueError("every code must have a path")
    strange = [node for path in paths for node in path if not isinstance(node, (str, int, float))]
    if strange:
        raise ValueError(f"codes and families must be strings or numbers, got {strange[0]!r:.80}")
    return Families(paths, int(data["level"]), bool(data["chosen"]))


_INFLUENCES = tuple(f"influence/{name}" for name in MACROS)


def write_documents(path: Path | BinaryIO, rows: DocumentRows) -> None:
    """Write one row per document: its tallies and its influence on each macro average."""
    columns = dict(zip(TALLIES, rows.tallies.T, strict=True))
    columns |= zip(_INFLUENCES, rows.macros.T, strict=True)
    write_table(path, columns)


def read_documents(content: bytes, evaluation: FamilyEvaluation) -> DocumentRows:
    """Read the content that :func:`write_documents` wrote for an evaluation."""
    statistics = evaluation.statistics
    table = checked_table(content, statistics.digest.rows, (), (*TALLIES, *_INFLUENCES))
    try:
        tallies = np.column_stack([table[name].to_numpy() for name in TALLIES]).astype(np.int32)
        macros = np.column_stack([table[name].to_numpy() for name in _INFLUENCES]).astype(float)
    except Exception as error:
        raise ValueError(f"the predictions are damaged: {type(error).__name__}: {error}") from None
    if not np.isfinite(macros).all():
        raise ValueError("the predictions must be finite numbers")
    if not np.array_equal(tallies.sum(axis=0, dtype=np.int64), statistics.sums):
        raise ValueError(
            "the predictions do not add up to the counts in the evaluation, so they belong to "
            "another evaluation"
        )
    return DocumentRows(tallies, macros)
