"""docs/magics.md: it names every magic, option and verb, and its cells run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from IPython.utils.capture import capture_output

from lakekit.notebook.magics import LakeMagics
from lakekit.notebook.options import CHARTS, DISPLAYS, MODES, OPTIONS
from lakekit.notebook.verbs import VERBS

PAGE = Path(__file__).parents[2] / "docs" / "magics.md"
TEXT = PAGE.read_text()
CELLS = re.findall(r"^```(?:sql|python)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_explained_and_has_an_example(option):
    assert re.search(rf"^\| .*`{option}[ `]", TEXT, re.MULTILINE)
    assert any(re.search(rf"lakesql.* {option}( |$)", cell.splitlines()[0]) for cell in CELLS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_explained_and_has_an_example(verb):
    assert re.search(rf"^\| `%lake {verb}[ `]", TEXT, re.MULTILINE)
    assert any(re.search(rf"%lake {verb}( |$)", cell, re.MULTILINE) for cell in CELLS)


@pytest.mark.parametrize("magic", sorted({name for kind in LakeMagics.magics.values() for name in kind}))
def test_every_magic_has_an_example(magic):
    assert any(re.search(rf"%{magic}( |$)", cell, re.MULTILINE) for cell in CELLS)


@pytest.mark.parametrize(
    ("option", "words"), [("--display", DISPLAYS), ("--chart", CHARTS), ("--mode", MODES)]
)
def test_every_choice_is_named(option, words):
    (row,) = [line for line in TEXT.splitlines() if line.startswith(f"| `{option}")]
    assert all(word in row for word in words)


def test_the_cells_run_from_top_to_bottom(ipython, lake, monkeypatch):
    monkeypatch.chdir(Path(lake.warehouse).parent)
    ipython.user_ns["lake"] = lake
    shown = []
    for cell in CELLS:
        with capture_output() as captured:
            done = ipython.run_cell(cell)
        assert done.success, f"{cell}\n{captured.stdout}"
        shown.append("\n".join(o.data.get("text/plain", "") for o in captured.outputs) + captured.stdout)
    pages = dict(zip(CELLS, shown, strict=True))
    of = {first: page for cell, page in pages.items() if (first := cell.splitlines()[0])}
    assert "3 rows" in of["%lakesql --display none SELECT * FROM demo.orders"]
    assert "open" in of["%lakesql --at 1 --timeout 60 SELECT * FROM demo.orders ORDER BY id"]
    assert '"state": {"status": "paid"}' in next(page for first, page in of.items() if "json" in first)
    assert "demo.events" in of["%lake tables demo"]
    assert ipython.user_ns["open_orders"].count() == 1
    lake.drop_database("demo", cascade=True)
