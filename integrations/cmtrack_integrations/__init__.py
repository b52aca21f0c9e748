"""Hooks of training frameworks: one thin module each, which collects predictions and calls ``log_evaluation``.

A framework is an extra of the distribution (``cmtrack[name]``) and never needed to import this package.
"""
