"""What docs/widgets.md says runs as it stands, and names every widget."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from lakekit import widgets
from tests.widgets.conftest import static

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "widgets.md").read_text(encoding="utf-8")


def test_the_examples_run(lake):
    code = "\n".join(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL))
    seen: dict[str, object] = {}
    exec(compile(code.replace('"./warehouse"', repr(lake.warehouse)), "widgets.md", "exec"), seen)
    shown = [static(seen[name]).text for name in ("creator", "panel", "view", "explorer", "files", "why")]
    texts = (
        "order_id BIGINT",
        "state: stopped",
        "not started",
        "CREATE TABLE",
        "0 buckets",
        "clicks, version 0",
    )
    assert all(text in page for text, page in zip(texts, shown, strict=True))
    lake.drop_table("clicks")


def test_every_widget_has_an_example_and_a_docstring():
    for name in widgets.__all__:
        assert f"widgets.{name}(" in TEXT
        assert inspect.getdoc(getattr(widgets, name))
