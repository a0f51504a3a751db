"""What HTML shows, and values that would do harm if they became part of it."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = [
    "<script>alert(1)</script>",
    '<img src=x onerror="alert(1)">',
    '"><a data-commandlinker-command="x">',
]


class Page(HTMLParser):
    """The tags and the visible text of a page."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags, self.texts = [], []
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.texts)
