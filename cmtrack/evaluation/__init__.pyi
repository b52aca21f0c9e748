from cmtrack.evaluation.catalog import BUILT_IN as BUILT_IN
from cmtrack.evaluation.from_arrays import evaluate as evaluate
from cmtrack.evaluation.gates import Gate as Gate
from cmtrack.evaluation.gates import GateOutcome as GateOutcome
from cmtrack.evaluation.loading import loads as loads
from cmtrack.evaluation.result import Evaluation as Evaluation
from cmtrack.evaluation.spec import Spec as Spec
