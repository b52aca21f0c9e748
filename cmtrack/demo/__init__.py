"""The demo: real models on a real survey, judged and tracked."""

from cmtrack.demo.run import DemoResult, DemoRun, run_demo

__all__ = ["DemoResult", "DemoRun", "run_demo"]
