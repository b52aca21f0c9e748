from cmtrack.report.figures import CLASSES as CLASSES
from cmtrack.report.figures import FAMILIES as FAMILIES
from cmtrack.report.figures import Picture as Picture
from cmtrack.report.figures import draw_figures as draw_figures
from cmtrack.report.figures import draw_pictures as draw_pictures
from cmtrack.report.formatting import metric_title as metric_title
from cmtrack.report.views import report_html as report_html
from cmtrack.report.views import verdict as verdict
