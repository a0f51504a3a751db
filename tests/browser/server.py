"""A real JupyterLab server on this machine, in a folder of its own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "extensions" / "lakekit-lab" / "labextensions"
_START_S = 120
_END_S = 60

# Cells out of sight stay in the page, so that tests find them, and nothing is typed that a test did not type.
_SETTINGS = {
    "notebook-extension/tracker": {
        "windowingMode": "none",
        "codeCellConfig": {"autoClosingBrackets": False},
    },
    "apputils-extension/notification": {"fetchNews": "false"},
}

_PYTHON = "from ipykernel.kernelapp import launch_new_instance; launch_new_instance({})"
KERNELS = {
    # As in an environment without the package.
    "bare": f"import sys; sys.modules['lakekit'] = None; {_PYTHON.format('')}",
    "julia": f"from ipykernel.ipkernel import IPythonKernel\n"
    f"class Julia(IPythonKernel): language_info = {{'name': 'julia', 'file_extension': '.jl'}}\n"
    f"{_PYTHON.format('kernel_class=Julia')}",
}
"""Kernels beside ``python3`` that say they know no lakekit: what they run."""


@dataclass(frozen=True)
class Server:
    """A running server.

    Attributes:
        url: its address, without a slash at its end.
        token: what lets a browser in.
        root: the folder whose notebooks it serves.
        log: what it and its kernels print.
    """

    url: str
    token: str
    root: Path
    log: Path


@contextmanager
def serve(folder: Path) -> Iterator[Server]:
    """Starts JupyterLab and stops it, and its kernels, at the end.

    Args:
        folder: an empty folder for settings, the log, and ``root``, where copies of the tutorials are.
    """
    root, log = folder / "root", folder / "server.log"
    for name in ("root", "config", "data", "runtime", "settings", "workspaces"):
        (folder / name).mkdir()
    for name, values in _SETTINGS.items():
        extension, plugin = name.split("/")
        path = folder / "settings" / "@jupyterlab" / extension / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    for name, code in KERNELS.items():
        spec = {"argv": [sys.executable, "-c", code, "-f", "{connection_file}"], "display_name": name}
        path = folder / "data" / "kernels" / name / "kernel.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(spec))
    for tutorial in (ROOT / "notebooks").glob("*.ipynb"):
        shutil.copy(tutorial, root)
    port, token = _free_port(), secrets.token_hex(16)
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTERLAB_SETTINGS_DIR": str(folder / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(folder / "workspaces"),
        "JUPYTER_TOKEN": token,
    }
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--expose-app-in-browser"),
        *("--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
        f"--ServerApp.root_dir={root}",
        # The tests are of the files in this tree, whatever the installation has.
        f"--LabApp.extra_labextensions_path={EXTENSION}",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        "--JupyterNotebookApp.expose_app_in_browser=True",
        f"--JupyterNotebookApp.extra_labextensions_path={EXTENSION}",
    ]
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=out, stderr=out)
    try:
        server = Server(f"http://127.0.0.1:{port}", token, root, log)
        _wait_for(server, process)
        yield server
    finally:
        process.terminate()
        try:
            process.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_for(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{server.url}/api", timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
        else:
            return
    raise RuntimeError(f"JupyterLab did not start:\n{server.log.read_text(errors='replace')[-3000:]}")
