from cmtrack.report.review.narrative import lead as lead
from cmtrack.report.review.narrative import verdict as verdict
from cmtrack.report.review.page import context as context
from cmtrack.report.review.report import as_json as as_json
from cmtrack.report.review.report import html as html
from cmtrack.report.review.report import markdown as markdown
from cmtrack.report.review.report import notebook_html as notebook_html
from cmtrack.report.review.review import Review as Review
