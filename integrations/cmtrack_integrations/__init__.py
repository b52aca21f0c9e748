"""Hooks of training frameworks, one thin module each.

A hook collects predictions and calls ``log_evaluation``. A framework is an extra of the
distribution (``cmtrack[name]``), and is never needed to import this package.

Like :func:`cmtrack.log_evaluation`, every hook sends by default a row for each evaluated sample to
the tracking store: labels, probabilities, weights and groups, up to 32 MB. ``predictions=False`` or
``"labels"`` limits that for one hook, ``CMTRACK_PREDICTIONS`` or ``[tool.cmtrack]`` in
``pyproject.toml`` for all (:mod:`cmtrack.tracking.settings`).

What a framework calls its rows, labels and outputs belongs here. Arithmetic on metrics and requests
to MLflow do not: they are in ``cmtrack.evaluation`` and ``cmtrack.tracking``. Start with
``_hook.py``, which all hooks share, and ``xgboost.py``, which shows one whole.
"""
