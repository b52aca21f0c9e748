"""Hooks for training frameworks, with one thin module for each framework.

A hook collects predictions and calls ``log_evaluation``. To install cmtrack together with a
framework, use the extra ``cmtrack[name]``. You can import this package without any framework.

Like :func:`cmtrack.log_evaluation`, every hook by default sends up to 32 MB of evaluated rows to
the tracking store, including labels, probabilities, weights and groups. ``predictions=False`` or
``"labels"`` limits what one hook sends. ``CMTRACK_PREDICTIONS`` or ``[tool.cmtrack]`` in
``pyproject.toml`` limits all hooks (:mod:`cmtrack.tracking.settings`).

These modules convert the rows, labels and outputs of a framework to arguments of cmtrack.
``cmtrack.evaluation`` computes the metrics, and ``cmtrack.tracking`` sends requests to MLflow.
Start with ``_hook.py``, which all hooks share, and ``xgboost.py``, a complete example.
"""
