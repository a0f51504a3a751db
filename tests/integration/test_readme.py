"""What the README shows runs as it stands."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(language):
    (found,) = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return found


def test_the_sql_and_then_the_python_run(lake, monkeypatch, tmp_path, capsys):
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
    follow_a_stream(lake, seen)
    assert "+I {'dt': datetime.date(2026, 1, 3)" in capsys.readouterr().out
    lake.drop_database("shop", cascade=True)


def follow_a_stream(lake, seen):
    """Runs the part on streams as a notebook does, up to the first change."""
    ticks = lake.spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    seen["events"] = ticks.selectExpr(
        "DATE'2026-01-03' dt", "value id", "'Dan' customer", "CAST(1 AS DECIMAL(10, 2)) amount"
    )
    code = block("py").replace("print(change.kind, change.row)", "print(change.kind, change.row); break")
    try:
        asyncio.run(eval(compile(code, "README.md", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), seen))
    finally:
        seen["ingestion"].stop()
    assert seen["ingestion"].status.error is None


@pytest.mark.parametrize("target", re.findall(r"\]\(([^)#]+)\)", README))
def test_links_lead_somewhere(target):
    assert target.startswith("https://") or (ROOT / target).exists()


@pytest.mark.parametrize("command", re.findall(r"^make (\w+)", README, re.MULTILINE))
def test_make_has_the_targets(command):
    assert re.search(rf"^{command}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
