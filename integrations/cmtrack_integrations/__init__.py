"""Hooks for training frameworks, with one thin module for each framework.

A hook collects predictions and calls ``log_evaluation``. To install cmtrack together with a
framework, use the extra ``cmtrack[name]``. You can import this package without any framework.

By default, every hook sends up to 32 MB of evaluated rows to the tracking store, as
:func:`cmtrack.log_evaluation` does. The rows include labels, probabilities, weights and groups. Set
``predictions=False`` or ``predictions="labels"`` to limit what one hook sends. To limit all hooks,
set ``CMTRACK_PREDICTIONS``, or ``[tool.cmtrack]`` in ``pyproject.toml`` (see
:mod:`cmtrack.tracking.settings`).

These modules convert a framework's rows, labels and outputs to arguments for cmtrack.
``cmtrack.evaluation`` computes the metrics, and ``cmtrack.tracking`` sends requests to MLflow.
Start with ``_hook.py``, which all hooks share, and ``xgboost.py``, a complete example.
"""
