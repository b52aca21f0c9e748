"""One MLflow run per machine, case and kind, for the first repeat, with the means over all repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mlflow
import numpy as np

from cmtrack import Evaluation, log_evaluation
from study import Spread


def log_machine(
    case: str,
    column: str,
    evaluation: Evaluation,
    spreads: Mapping[str, Spread],
    parameters: Mapping[str, Any],
) -> None:
    """Log an evaluation as a run ``<case>: <column>``.

    Parameters
    ----------
    case, column : str
        Of the published table.
    evaluation : Evaluation
        Of the first repeat.
    spreads : mapping of metric name to Spread
        Over the repeats; what has no number is left out.
    parameters : mapping
    """
    with mlflow.start_run(run_name=f"{case}: {column}", tags={"case": case}):
        mlflow.log_params({"case": case, "machine": column, **parameters})
        log_evaluation(evaluation)
        kept = {
            f"{kind}/{name}": value
            for name, s in spreads.items()
            for kind, value in s._asdict().items()
        }
        mlflow.log_metrics({name: value for name, value in kept.items() if np.isfinite(value)})
