"""What a learner sees: a real JupyterLab in a real browser. Screenshots and times go to results/browser/."""

import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import pytest
from browsers import SEEN, open_browser, violations
from explorer_cells import cells_of
from nbformat.v4 import new_code_cell, new_notebook
from notebook_runs import PATHS
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
EXERCISE = "1_pairwise_modeling.ipynb"
EXPLORERS = {  # by the number of their notebook: controls with keys that change them
    "01": {"N": ["ArrowLeft", "ArrowDown"]},
    "02": {"mode": ["ArrowDown", "ArrowUp"], "boundary": ["ArrowRight", "ArrowUp", "ArrowLeft"]},
    "03": {"moment": ["Home", "ArrowRight", "PageUp"]},
    "04": {"method": ["ArrowDown", "ArrowUp", "c"], "N": ["ArrowRight", "ArrowLeft"]},
    "09": {"choice": ["ArrowDown"], "labels": ["ArrowRight"]},
}
SECONDS = 1000  # in Playwright's unit
SLOW = 150 * SECONDS  # several times what the slowest notebook takes

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=60 * SECONDS)
    with open_browser() as opened:
        yield opened


def settings_of_our_own(folder):
    """An environment in which JupyterLab reads and writes nothing of the user's."""
    places = ["JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
    places += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"]
    settings = {
        "JUPYTER_CONFIG_DIR/jupyter_server_config.json": {"ServerApp": {"allow_root": True}},  # containers
        "JUPYTERLAB_SETTINGS_DIR/@jupyterlab/notebook-extension/tracker.jupyterlab-settings": {
            "windowingMode": "none"  # else only cells in view can be looked at
        },
        "JUPYTERLAB_SETTINGS_DIR/@jupyterlab/apputils-extension/notification.jupyterlab-settings": {
            "fetchNews": "false",
            "checkForUpdates": False,
        },
    }
    for name, values in settings.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(values))
    ours = {name: str(folder / name) for name in places}
    return {**os.environ, **ours, "JOBLIB_MULTIPROCESSING": "0"}  # other tests run beside these


@contextlib.contextmanager
def serve(command, **options):
    """Start a server; end it with its kernels."""
    server = subprocess.Popen(command, start_new_session=True, **options)
    try:
        yield server
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on an exercise and a notebook of all explorers; gives the address of a file."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "notebooks").mkdir()
    shutil.copy(ROOT / "notebooks" / "exercises" / EXERCISE, folder / "notebooks")
    apart = [f"exec({cells_of(number)[0]!r}, names := {{}})" for number in EXPLORERS]  # they share names
    cells = [new_code_cell(f"{source}\nnames['explorer'].show()") for source in apart]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)"}
    made = new_notebook(cells=cells, metadata={"kernelspec": kernel})
    nbformat.write(made, folder / "notebooks" / "explorers.ipynb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", f"--port={port}"]
    command += [f"--ServerApp.root_dir={folder / 'notebooks'}", f"--IdentityProvider.token={token}"]
    log = folder / "server.log"
    base = f"http://127.0.0.1:{port}"
    with (
        log.open("w") as file,
        serve(command, env=settings_of_our_own(folder), stdout=file, stderr=file) as server,
    ):
        for _ in range(120):
            assert server.poll() is None, log.read_text()[-2000:]
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{base}/api?token={token}", timeout=2)
                break
            time.sleep(0.5)
        yield lambda path: f"{base}/lab/tree/{path}?token={token}&reset"


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1280, "height": 900})  # holds an explorer and its controls
    opened.set_default_timeout(30 * SECONDS)
    yield opened
    opened.close()


def open_and_run(page, address):
    """Open a notebook and run all its cells, without an error or a warning."""
    page.goto(address)
    expect(page.locator(".jp-Notebook .jp-CodeCell").first).to_be_visible()
    wait_until_idle(page)
    first = page.locator(".jp-CodeCell .jp-InputPrompt").first
    for _ in range(3):  # JupyterLab drops the command if its kernel is not quite there yet
        page.locator(".lm-MenuBar-item", has_text=re.compile("^Run$")).click()
        page.locator(".lm-Menu-item:visible", has_text=re.compile("^Run All Cells$")).first.click()
        with contextlib.suppress(AssertionError):
            expect(first).not_to_have_text("[ ]:", timeout=15 * SECONDS)
            break
    last = page.locator(".jp-CodeCell .jp-InputPrompt:not(.jp-Placeholder-prompt)").last  # that is not folded
    expect(last).to_have_text(re.compile(r"\[\d+\]:"), timeout=SLOW)
    wait_until_idle(page)
    for kind in ("error", "stderr"):
        outputs = page.locator(f"[data-mime-type='application/vnd.jupyter.{kind}']")
        assert outputs.count() == 0, outputs.first.inner_text()


def wait_until_idle(page):
    expect(page.locator(".jp-StatusBar-Widget", has_text="| Idle").first).to_be_visible(timeout=SLOW)
    idle = page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first
    expect(idle).to_be_attached(timeout=SLOW)
    expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0, timeout=SLOW)


def test_explorers_move(lab, page):
    """Change controls by the keyboard alone, found by their names, and see the picture follow."""
    open_and_run(page, lab("explorers.ipynb"))
    n_cells = page.locator(".jp-Cell").count()
    for number, controls in enumerate(EXPLORERS.values()):
        cell = page.locator(".jp-CodeCell", has=page.locator(".dmls2r-explorer")).nth(number)
        cell.locator(".jp-InputPrompt").click()
        explorer = cell.locator(".dmls2r-explorer")
        picture = explorer.locator("img")
        for name, keys in controls.items():
            control = explorer.get_by_role("slider", name=name, exact=True)
            control = control.or_(explorer.get_by_role("combobox", name=name, exact=True))
            control.focus()
            start = time.perf_counter()
            for key in keys:
                before = picture.get_attribute("src")
                page.keyboard.press(key)
                expect(picture).not_to_have_attribute("src", before)
                expect(control).to_be_focused()
            with (SEEN / "times.txt").open("a") as file:
                file.write(f"{name}: {1000 * (time.perf_counter() - start) / len(keys):.0f} ms a key\n")
        expect(cell).to_have_class(re.compile("jp-mod-selected"))
        assert len(picture.get_attribute("alt")) > 30
        assert picture.evaluate("img => img.naturalWidth") > 300
        explorer.evaluate("form => form.scrollIntoView({block: 'center'})")
        page.wait_for_timeout(300)
        page.screenshot(path=SEEN / f"explorer_{number}.png")
        for box in (explorer.locator("label").first, explorer.locator("p")):
            expect(box).to_be_in_viewport(ratio=1)
    assert violations(page, ".dmls2r-explorer") == []
    assert page.locator(".jp-Cell").count() == n_cells
    unsaved = page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")
    expect(unsaved).to_have_count(1)
    page.keyboard.press("Control+S")  # JupyterLab's own keys still work
    expect(unsaved).to_have_count(0)


def type_answer(page, first_line, body):
    """Replace the cell that starts with a line, and run it and the check below it."""
    cell = page.locator(".jp-CodeCell", has=page.locator(".cm-line", has_text=first_line)).first
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(f"{first_line}(estimates):\n    {body}")
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    wait_until_idle(page)


def test_exercise_answers_at_once(lab, page):
    open_and_run(page, lab(EXERCISE))
    outputs = page.locator(".jp-CodeCell .jp-OutputArea-output")
    expect(outputs.last).to_contain_text("0 of 12 points, 0 of 6 tasks solved")

    type_answer(page, "def asymmetry", "return (estimates + estimates.T).abs().mean()")
    expect(page.get_by_text("✗ Task 2: two samples – the diagonal")).to_be_visible()
    page.screenshot(path=SEEN / "exercise_wrong.png")

    sums = "sums = (estimates + estimates.T).fill_diagonal_(0).abs().sum()"
    type_answer(page, "def asymmetry", f"{sums}\n    return sums / (len(estimates) * (len(estimates) - 1))")
    expect(page.get_by_text("✓ Task 2: two samples")).to_be_visible()
    expect(page.get_by_text("✗ Task 2")).to_have_count(0)
    page.screenshot(path=SEEN / "exercise_right.png")


@pytest.mark.exhaustive
@pytest.mark.skipif(os.name == "nt", reason="needs make")
def test_make_lab_shows_the_first_notebook(page, tmp_path):
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("needs to run in .venv, as make test does")
    address = tmp_path / "address"
    opener = tmp_path / "browser.sh"
    opener.write_text(f'#!/bin/sh\necho "$1" > {address}.part && mv {address}.part {address}\n')
    opener.chmod(0o755)
    environment = {**settings_of_our_own(tmp_path), "BROWSER": f"{opener} %s"}
    with serve(["make", "lab"], cwd=ROOT, env=environment) as server:
        for _ in range(120):
            if address.exists():
                break
            assert server.poll() is None
            time.sleep(0.5)
        page.goto(address.read_text().strip())
        expect(page.locator(".lm-TabBar-tab.lm-mod-current", has_text=PATHS[0].name)).to_be_visible()
        expect(page.locator(".jp-RenderedHTMLCommon h1").first).to_contain_text("00")
        expect(page.locator(".jp-DirListing-item", has_text=PATHS[-1].name)).to_be_visible()
        page.screenshot(path=SEEN / "make_lab.png")
