"""The evaluator that ``mlflow.models.evaluate`` offers under the name ``cmtrack``.

The package registers the evaluator under the entry point ``mlflow.model_evaluator``. MLflow imports
this module for every evaluation, so it only checks whether the caller requested cmtrack. The module
``cmtrack.tracking.evaluator`` does the work and is imported only when it is needed.
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
    """Evaluator that adds cmtrack's evaluation of classifiers to ``mlflow.models.evaluate``.

    The evaluator runs only if you name it, as in ``evaluators=["default", "cmtrack"]``, or
    configure it, as in ``evaluator_config={"cmtrack": {...}}``. If cmtrack's evaluation fails, you
    get a warning, and MLflow continues with the run and the other evaluators.

    Other Parameters
    ----------------
    y_prob : str, list of str, or mapping of label to str
        The columns that contain probabilities, either in the data or in the frame that the model
        returns. Pass all columns in the order of ``labels``, one column for the positive class, or
        a pattern such as ``"p_*"``, in which the star stands for the label. Pass ``"output"`` if
        the model returns only the probability of the positive class. You can omit ``y_prob`` if the
        model has ``predict_proba``.
    sample_weight, groups, row_ids : str or array
        The name of a column in the data, or an array of values.
    segments : list of str, or of tuples of str
        Columns of the data that divide the rows into segments. They are not passed to the model.
        Columns in a tuple are crossed. You can also pass segments in any other form that
        :func:`cmtrack.evaluate` accepts.
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
    The cost is one call of :func:`cmtrack.log_evaluation`. If MLflow's predictions are not
    probabilities, the model predicts a second time.

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

        If ``evaluators=None``, MLflow calls this method on every installed evaluator before the run
        starts. MLflow passes the configuration that is stored under the evaluator's name, or else
        one that applies to all evaluators. A configuration for all evaluators counts as a request
        for cmtrack only if cmtrack accepts every option in it. If the caller names the evaluator,
        MLflow's ``_evaluate`` calls this method again.
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
