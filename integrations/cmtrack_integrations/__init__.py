"""Hooks of training frameworks, one thin module each.

A hook collects predictions and calls ``log_evaluation``. Each framework is an extra
(``cmtrack[name]``). You can import this package without any framework.

Like :func:`cmtrack.log_evaluation`, every hook by default sends the evaluated rows to the tracking
store, with labels, probabilities, weights and groups, up to 32 MB. ``predictions=False`` or
``"labels"`` limits what one hook sends. ``CMTRACK_PREDICTIONS`` or ``[tool.cmtrack]`` in
``pyproject.toml`` limits all hooks (:mod:`cmtrack.tracking.settings`).

These modules translate the rows, labels and outputs of a framework. ``cmtrack.evaluation`` computes
the metrics, and ``cmtrack.tracking`` sends requests to MLflow. Start with ``_hook.py``, which all
hooks share, and ``xgboost.py``, a complete example.
"""
