"""JupyterLab in a browser, as the tests drive it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat

from tests.browser.server import ROOT, Server

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

SCREENSHOTS = ROOT / "build" / "screenshots"
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
RUN_S = 180
"""How long a cell may run; a Spark that starts is slow on a busy machine."""

CONNECT = """\
import lakekit
lake = lakekit.connect({warehouse!r}, config={{"spark.ui.enabled": "false", "spark.driver.memory": "1g"}})
%load_ext lakekit"""

_APP = "window.jupyterapp"
_FIGURES = """() => [...document.querySelectorAll('.js-plotly-plot')].map(figure => {
    const {width, height} = figure.getBoundingClientRect();
    const axes = ['xaxis', 'yaxis'].map(name => figure._fullLayout?.[name]?.range);
    const sizes = (figure._fullData ?? []).map(trace => `${trace.type} ${trace.y?.length} ${trace.visible}`);
    const marks = figure.querySelectorAll('.point path, .surface').length;
    return `figure of ${width} x ${height}: ${marks} marks, axes ${JSON.stringify(axes)}, traces ${sizes}`;
})"""
_PANEL = f"{_APP}.shell.currentWidget"


class Notebook:
    """An open notebook with a kernel.

    Attributes:
        page: Playwright's page, for everything that is not here.
    """

    def __init__(self, page: Page) -> None:
        self.page = page

    def run(self, code: str, *, ok: bool = True) -> Locator:
        """Adds a cell at the end, runs it, waits until it has run, and returns its output area.

        Args:
            code: the cell.
            ok: whether an error fails the test.
        """
        index = self.start(code)
        self.wait_idle()
        return self._outputs(index, ok)

    def start(self, code: str) -> int:
        """Adds a cell at the end, starts it, and returns its index without waiting."""
        index = self.add(code)
        self.command("notebook:run-cell", wait=False)
        return index

    def add(self, code: str) -> int:
        """Adds a cell at the end without running it, makes it the active one, and returns its index."""
        return self.page.evaluate(
            f"""async code => {{
                const panel = {_PANEL}, content = panel.content;
                content.activeCellIndex = content.widgets.length - 1;
                const last = content.activeCell.model;
                if (last.type !== 'code' || last.sharedModel.getSource().trim() || last.executionCount)
                    await {_APP}.commands.execute('notebook:insert-cell-below');
                content.activeCell.model.sharedModel.setSource(code);
                return content.activeCellIndex;
            }}""",
            code,
        )

    def run_all(self, seconds: float = RUN_S) -> None:
        """Runs all cells of the notebook, waits until they have run, and asserts that none failed."""
        self.command("notebook:run-all-cells", wait=False)
        self.wait_idle(seconds)
        for index in range(self.page.evaluate(f"{_PANEL}.content.widgets.length")):
            self._outputs(index, ok=True)

    def close(self) -> None:
        """Saves and closes the notebook, and ends its kernel."""
        self.page.evaluate(
            f"""async () => {{
                const panel = {_PANEL};
                await panel.context.save();
                await panel.sessionContext.shutdown();
                panel.close();
            }}"""
        )

    def type(self, code: str) -> Locator:
        """Adds an empty cell and types into it, as a person would; returns the cell."""
        cell = self.cell(self.add(""))
        cell.locator(".cm-content").click()
        self.page.keyboard.type(code)
        return cell

    def cell(self, index: int) -> Locator:
        """Returns a cell by its index."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Cell").nth(index)

    def sources(self) -> list[str]:
        """Returns the text of each cell."""
        return self.page.evaluate(f"{_PANEL}.content.widgets.map(w => w.model.sharedModel.getSource())")

    def wait_idle(self, seconds: float = RUN_S) -> None:
        """Waits until no cell runs or is queued."""
        self.page.wait_for_function(
            f"""() => {{
                const panel = {_PANEL};
                return panel.sessionContext.session?.kernel?.status === 'idle'
                    && panel.content.widgets.every(w => w.model.type !== 'code'
                        || w.model.executionState === 'idle');
            }}""",
            timeout=seconds * 1000,
        )

    def wait_busy(self) -> None:
        """Waits until the kernel works on a cell."""
        self.page.wait_for_function(f"() => {_PANEL}.sessionContext.session.kernel.status === 'busy'")

    def command(self, name: str, *, wait: bool = True) -> None:
        """Executes a command of JupyterLab, for example ``notebook:interrupt-kernel``."""
        call = f"{_APP}.commands.execute('{name}')"
        self.page.evaluate(f"async () => {{ await {call}; }}" if wait else f"() => {{ {call}; }}")

    def theme(self, name: str) -> None:
        """Changes to the theme ``light`` or ``dark``."""
        self.page.evaluate(
            f"name => {_APP}.commands.execute('apputils:change-theme', {{theme: name}})", THEMES[name]
        )
        light = "true" if name == "light" else "false"
        self.page.wait_for_selector(f'body[data-jp-theme-light="{light}"]', state="attached")

    def screenshots(self, name: str, of: Locator | None = None) -> list[Path]:
        """Writes ``build/screenshots/NAME-light.png`` and ``-dark.png``, of the whole window or one element."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        paths = []
        for theme in ("dark", "light"):
            self.theme(theme)
            paths.append(SCREENSHOTS / f"{name}-{theme}.png")
            (of or self.page).screenshot(path=paths[-1], animations="disabled")
        return paths

    def _outputs(self, index: int, ok: bool) -> Locator:
        cell = self.cell(index)
        if ok:
            error = cell.locator('[data-mime-type="application/vnd.jupyter.stderr"]:has-text("Traceback")')
            failed: Any = self.page.evaluate(
                f"""index => ({_PANEL}.content.widgets[index].model.outputs?.toJSON() ?? [])
                    .filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue)""",
                index,
            )
            assert not failed, f"cell {index} failed: {failed}"
            assert error.count() == 0, error.first.inner_text()
        return cell.locator(".jp-OutputArea").first


class Lab:
    """A JupyterLab server and a browser that is open on it.

    Attributes:
        server: the server; ``server.root`` is its folder of notebooks.
        page: the browser's page, always the same one.
    """

    def __init__(self, server: Server, page: Page) -> None:
        self.server = server
        self.page = page
        self._errors: list[str] = []
        page.on("pageerror", lambda error: self._errors.append(str(error.stack or error)))
        page.on("console", lambda said: self._errors.append(said.text) if said.type == "error" else None)

    def report(self, name: str) -> str:
        """Writes ``build/screenshots/NAME.png``; returns the errors of scripts and what the figures are like."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", animations="disabled")
        figures = self.page.evaluate(_FIGURES)
        return "\n".join([*self._errors, *figures])

    def open(self, name: str, cells: Sequence[str] = (), kernel: str = "python3") -> Notebook:
        """Opens a notebook of ``server.root`` with its kernel; one that is not there is made.

        Args:
            name: the file's name, ending in ``.ipynb``. The same name again finds the kernel still running.
            cells: the code cells of a notebook that is made.
            kernel: of a notebook that is made: ``python3`` or one of `tests.browser.server.KERNELS`.
        """
        path = self.server.root / name
        if self.page.url.startswith(self.server.url):
            self.page.evaluate(f"() => {_APP}.commands.execute('docmanager:save-all')")
        if not path.exists():
            notebook = nbformat.v4.new_notebook(
                cells=[nbformat.v4.new_code_cell(code) for code in cells],
                metadata={"kernelspec": {"name": kernel, "display_name": kernel}},
            )
            nbformat.write(notebook, path)
        return self._go(f"lab/tree/{name}?reset&")

    def open_in_notebook_7(self, name: str) -> Notebook:
        """Opens a notebook that is there in Jupyter Notebook, with the kernel that it may have."""
        self.page.evaluate(f"() => {_APP}.commands.execute('docmanager:save-all')")
        return self._go(f"notebooks/{name}?")

    def _go(self, address: str) -> Notebook:
        self._errors.clear()
        self.page.goto(f"{self.server.url}/{address}token={self.server.token}")
        self.page.wait_for_selector(".jp-NotebookPanel .jp-Cell")
        notebook = Notebook(self.page)
        notebook.wait_idle()
        return notebook

    def open_lake(self, name: str) -> Notebook:
        """Opens a notebook, and connects a new one to an empty warehouse: it has ``lake`` and the magics."""
        is_new = not (self.server.root / name).exists()
        notebook = self.open(name)
        if is_new:
            notebook.run(CONNECT.format(warehouse=f"{Path(name).stem}.warehouse"))
        return notebook
