"""What the README shows runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return found


def test_the_sql_and_then_the_python_run(lake, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    lake.drop_database("shop", if_exists=True, cascade=True)
    from lakekit.sql.engine import execute_script

    results = execute_script(lake, block("sql"), {})
    changes = next(r for r in results if "$changes" in r.statement).rows.collect()
    assert sorted(row._change_kind for row in changes) == ["+I", "+I", "+U", "-D", "-U"]
    code = block("python").replace('warehouse="warehouse"', f"warehouse={lake.warehouse!r}")
    seen: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), seen)
    assert seen["orders"].to_df().count() == 1
    lake.drop_database("shop", cascade=True)


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(target):
    assert target.startswith("https://") or (ROOT / target).exists()


@pytest.mark.parametrize("command", re.findall(r"^make (\w+)", README, re.MULTILINE))
def test_make_has_the_targets(command):
    assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
