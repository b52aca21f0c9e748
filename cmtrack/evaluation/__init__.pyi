from cmtrack.evaluation.from_arrays import evaluate as evaluate
from cmtrack.evaluation.result import Evaluation as Evaluation
