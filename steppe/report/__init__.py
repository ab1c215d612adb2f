"""Results as pages: self-contained HTML, Markdown."""

from steppe.report._page import markdown as markdown
from steppe.report._page import page as page
