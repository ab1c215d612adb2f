"""Results as pages: self-contained HTML, Markdown."""

from steppe._guard import exported as _exported
from steppe.report._page import Plot as Plot
from steppe.report._page import markdown as markdown
from steppe.report._page import page as page
from steppe.report._views import PICTURES as PICTURES

__dir__ = _exported(__name__)
