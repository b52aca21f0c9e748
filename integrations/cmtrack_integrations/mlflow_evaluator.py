"""The evaluator that you select in ``mlflow.models.evaluate`` with the name ``cmtrack``.

The package registers it under the entry point ``mlflow.model_evaluator``. MLflow imports this
module for every evaluation, so it only checks whether the caller requested cmtrack.
``cmtrack.tracking.evaluator`` does the work and is imported when needed.
"""

from __future__ import annotations

import sys
from typing import Any

from mlflow.models.evaluation.base import ModelEvaluator

NAME = "cmtrack"
_ARGUMENTS = frozenset(
    {
        "y_prob",
        "labels",
        "calibration",
        "target",
        "sample_weight",
        "groups",
        "row_ids",
        "segments",
        "prefix",
        "step",
        "dataset",
        "figures",
        "metrics",
        "on_existing",
        "params",
        "predictions",
        "strict",
    }
)


def options() -> frozenset[str]:
    """Return the names of all options.

    Examples
    --------
    >>> from cmtrack_integrations.mlflow_evaluator import options
    >>> sorted(options())[:4]
    ['calibration', 'confidence_level', 'costs', 'dataset']
    """
    from cmtrack.evaluation.spec import Spec

    return _ARGUMENTS | Spec.options().keys()


class CmtrackEvaluator(ModelEvaluator):  # type: ignore[misc]
    """Evaluator of classifiers with cmtrack inside ``mlflow.models.evaluate``.

    The evaluator runs only if you name it (``evaluators="cmtrack"`` or ``evaluators=["default",
    "cmtrack"]``) or configure it (``evaluator_config={"cmtrack": {...}}``). If its evaluation
    fails, you get a warning, and the run and the other evaluators continue.

    Other Parameters
    ----------------
    y_prob : str, list of str, or mapping of label to str
        Columns of probabilities in the data, or in the frame that the model returns. You can give a
        pattern such as ``"p_*"``, in which the star matches the label, one column for the positive
        class, or all columns in the order of ``labels``. ``"output"`` means that the model returns
        one column, the probability of the positive class. You can omit ``y_prob`` if the model has
        ``predict_proba``.
    sample_weight, groups, row_ids : str or array
        The name of a column of the data, or an array of values.
    segments : list of str, or of tuples of str
        Columns of the data that divide the rows, and are not passed to the model. A tuple crosses
        its columns. You can also pass any form that :func:`cmtrack.evaluate` accepts.
    grouping : Grouping, mapping or path
        A ``Grouping``, plain data for ``Grouping.from_dict``, or the path of a YAML or JSON file.
    labels, calibration, target, and the options of ``cmtrack.evaluation.spec.Spec``
        As in :func:`cmtrack.evaluate`.
    prefix, step, metrics, on_existing, predictions, dataset, figures, strict
        As in :func:`cmtrack.log_evaluation`.
    params : dict
        Inference parameters for the model's ``predict``.

    Notes
    -----
    The cost is one call of :func:`cmtrack.log_evaluation`. The model predicts a second time if
    MLflow's predictions are not probabilities.

    Examples
    --------
    >>> import mlflow
    >>> import pandas as pd
    >>> columns = {"party": [0, 1, 1, 0], "predicted": [0, 1, 0, 0], "p_0": [0.8, 0.1, 0.6, 0.9]}
    >>> table = pd.DataFrame(columns)
    >>> table["p_1"] = 1 - table["p_0"]
    >>> with mlflow.start_run():
    ...     result = mlflow.models.evaluate(
    ...         data=table, targets="party", predictions="predicted", model_type="classifier",
    ...         evaluators="cmtrack", evaluator_config={"y_prob": "p_*"},
    ...     )
    >>> result.metrics["binary/recall"], result.metrics["binary/roc_auc"]
    (0.5, 1.0)
    """

    @classmethod
    def can_evaluate(cls, *, model_type: Any, evaluator_config: Any, **kwargs: Any) -> bool:
        """Return whether cmtrack was requested for a classifier.

        With ``evaluators=None``, MLflow calls this for every installed evaluator before the run
        starts. It passes the configuration under the evaluator's name, or a configuration for all
        evaluators. A configuration for all evaluators is a request for cmtrack only if cmtrack has
        all of its options. If the caller names the evaluator, MLflow's ``_evaluate`` calls this
        method again.
        """
        if model_type != "classifier":
            return False
        # MLflow calls this method to list evaluators, and then in ``_evaluate`` for each listed
        # evaluator. In the second call, the evaluator was named by the caller or has already
        # returned True.
        if sys._getframe(1).f_code.co_name == "_evaluate":
            return True
        config = own_config(evaluator_config)
        return bool(config) and config.keys() <= options()

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: Any,
        evaluator_config: Any,
        model: Any = None,
        predictions: Any = None,
        model_id: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Evaluate the predictions, log to the run, and return MLflow's ``EvaluationResult``."""
        from cmtrack.tracking.evaluator import evaluate_dataset

        return evaluate_dataset(
            dataset,
            config=own_config(evaluator_config),
            known=options(),
            run_id=run_id,
            model=model,
            model_id=model_id,
            predictions=predictions,
        )


def own_config(config: Any) -> dict[str, Any]:
    """Return the options from a configuration, which may nest them under the evaluator's name.

    Examples
    --------
    >>> from cmtrack_integrations.mlflow_evaluator import own_config
    >>> own_config({"cmtrack": {"y_prob": "p_*"}}), own_config({"y_prob": "p_*"}), own_config(None)
    ({'y_prob': 'p_*'}, {'y_prob': 'p_*'}, {})
    """
    config = config or {}
    nested = config.get(NAME)
    if isinstance(nested, dict) and len(config) == 1:
        return dict(nested)
    return dict(config)
