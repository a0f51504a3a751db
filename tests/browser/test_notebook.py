"""A notebook in the browser: SQL cells, their results, and the stop button."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def notebook(lab):
    opened = lab.open_lake("notebook.ipynb")
    opened.run(
        "%%lakesql\n"
        "CREATE TABLE orders (id BIGINT NOT NULL, customer STRING, amount DOUBLE, PRIMARY KEY (id)) USING lake;\n"
        "INSERT INTO orders VALUES (1, 'ada', 5.5), (2, 'bob', 7.25)"
    )
    return opened


def test_a_cell_shows_its_rows_as_a_table(notebook):
    output = notebook.run("%%lakesql\nSELECT id, customer, amount FROM orders ORDER BY id")
    assert output.locator("th").all_inner_texts() == ["id", "customer", "amount"]
    assert output.locator("tbody tr").all_inner_texts() == ["1\tada\t5.5", "2\tbob\t7.25"]
    notebook.screenshots("result-table")


def test_the_stop_button_cancels_a_query_and_the_session_stays_usable(notebook):
    index = notebook.start("%%lakesql\nSELECT count(*) FROM range(100000000000000) WHERE sha2(id, 512) < '0'")
    notebook.page.wait_for_function(
        "() => window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'busy'"
    )
    notebook.page.locator(
        '[data-command="notebook:interrupt-kernel"], jp-button[title^="Interrupt"]'
    ).first.click()
    notebook.wait_idle(60)
    assert "Interrupted: the statement was cancelled." in notebook.cell(index).inner_text()
    output = notebook.run("%%lakesql\nSELECT 41 + 1 AS answer")
    assert output.locator("tbody td").all_inner_texts() == ["42"]
