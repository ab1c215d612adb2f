"""Results as pages: self-contained HTML, Markdown."""

from steppe._guard import exported as _exported
from steppe.report._page import markdown as markdown
from steppe.report._page import page as page

__dir__ = _exported(__name__)
