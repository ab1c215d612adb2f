"""Results as pages: self-contained HTML, Markdown."""
