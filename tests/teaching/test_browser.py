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
from browsers import AXE, open_browser
from notebook_runs import PATHS
from playwright.sync_api import expect

ROOT = Path(__file__).parents[2]
SEEN = ROOT / "results" / "browser"
EXPLORERS = {  # what moves in a notebook: controls, and keys that change them
    "01_pairwise_modeling": {"N": ["ArrowLeft", "ArrowDown"]},
    "02_triplet_mining": {
        "mode": ["ArrowDown", "ArrowUp"],
        "boundary": ["ArrowRight", "ArrowUp", "ArrowLeft"],
    },
    "03_alternating_training": {"moment": ["Home", "ArrowRight", "PageUp"]},
    "04_evaluation": {"method": ["ArrowDown", "ArrowUp", "c"], "N": ["ArrowLeft", "ArrowRight"]},
    "09_which_rows_to_label": {"choice": ["ArrowDown"], "labels": ["ArrowRight", "ArrowRight", "ArrowLeft"]},
}
HEIGHT = 900  # of a small screen, which holds an explorer with all its controls
FASTER = {  # parameters in place of the defaults, which nbval runs
    "01_pairwise_modeling": ("n_epochs: int = 30", "n_epochs: int = 5"),
    "03_alternating_training": ("n_epochs: int = 30", "n_epochs: int = 5"),
    "04_evaluation": ("n_seeds: int = 8", "n_seeds: int = 2"),
}
SECONDS = 1000  # in Playwright's unit
SLOW = 150 * SECONDS  # several times what the slowest notebook takes

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def browser():
    SEEN.mkdir(parents=True, exist_ok=True)
    expect.set_options(timeout=60 * SECONDS)
    with open_browser() as opened:
        yield opened


def settings_of_our_own(folder):
    """An environment in which JupyterLab reads and writes nothing of the user's."""
    places = ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTERLAB_SETTINGS_DIR", "IPYTHONDIR")
    for name in (*places, "JUPYTERLAB_WORKSPACES_DIR"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "JUPYTER_CONFIG_DIR" / "jupyter_server_config.json").write_text(
        json.dumps({"ServerApp": {"allow_root": True}})  # containers
    )
    settings = {
        "notebook-extension/tracker": {"windowingMode": "none"},  # else only cells in view can be looked at
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    }
    for name, values in settings.items():
        path = folder / "JUPYTERLAB_SETTINGS_DIR" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    ours = {name: str(folder / name) for name in (*places, "JUPYTERLAB_WORKSPACES_DIR")}
    return {**os.environ, **ours, "JOBLIB_MULTIPROCESSING": "0"}  # other tests run beside these


def stop(server):
    """End a server with its kernels."""
    os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(timeout=20)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on copies of all notebooks; gives a function from a path to its address."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copytree(ROOT / "notebooks", folder / "notebooks")
    for name, (default, faster) in FASTER.items():
        copied = folder / "notebooks" / f"{name}.ipynb"
        assert default in copied.read_text()
        copied.write_text(copied.read_text().replace(default, faster))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", f"--port={port}"]
    command += [f"--ServerApp.root_dir={folder / 'notebooks'}", f"--IdentityProvider.token={token}"]
    with open(folder / "server.log", "w") as log:
        server = subprocess.Popen(
            command, env=settings_of_our_own(folder), stdout=log, stderr=log, start_new_session=True
        )
    base = f"http://127.0.0.1:{port}"
    for _ in range(120):
        assert server.poll() is None, (folder / "server.log").read_text()[-2000:]
        try:
            urllib.request.urlopen(f"{base}/api?token={token}", timeout=2)
            break
        except OSError:
            time.sleep(0.5)
    yield lambda path: f"{base}/lab/tree/{path}?token={token}&reset"
    stop(server)


@pytest.fixture
def page(browser):
    opened = browser.new_page(viewport={"width": 1280, "height": HEIGHT})
    opened.set_default_timeout(30 * SECONDS)
    yield opened
    opened.close()


def open_notebook(page, address):
    page.goto(address)
    expect(page.locator(".jp-Notebook .jp-CodeCell").first).to_be_visible(timeout=60 * SECONDS)
    wait_until_idle(page)


def wait_until_idle(page):
    expect(page.locator(".jp-StatusBar-Widget", has_text="| Idle").first).to_be_visible(timeout=SLOW)
    expect(page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").first).to_be_attached(
        timeout=SLOW
    )


def choose(page, menu, item):
    page.locator(".lm-MenuBar-item", has_text=re.compile(f"^{menu}$")).click()
    page.locator(".lm-Menu-item:visible", has_text=re.compile(f"^{item}$")).first.click()


def run_all(page):
    first = page.locator(".jp-CodeCell .jp-InputPrompt").first
    for _ in range(3):  # JupyterLab drops the command if its kernel is not quite there yet
        choose(page, "Run", "Run All Cells")
        with contextlib.suppress(AssertionError):
            expect(first).not_to_have_text("[ ]:", timeout=15 * SECONDS)
            break
    last = page.locator(".jp-CodeCell .jp-InputPrompt:not(.jp-Placeholder-prompt)").last  # that is not folded
    expect(last).to_have_text(re.compile(r"\[\d+\]:"), timeout=SLOW)
    wait_until_idle(page)
    expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0, timeout=SLOW)


def note(line):
    with open(SEEN / "times.txt", "a") as file:
        file.write(f"{line}\n")
    print(line)


@pytest.mark.parametrize("name", EXPLORERS)
def test_runs_in_jupyterlab(name, lab, page):
    """The notebooks in which something moves; nbval and `dmls2r run` run the others too."""
    (path,) = (path for path in PATHS if path.stem == name)
    open_notebook(page, lab(path.name))
    choose(page, "Edit", "Clear Outputs of All Cells")
    assert page.locator(".jp-OutputArea-output").count() == 0
    start = time.perf_counter()
    run_all(page)
    seconds = time.perf_counter() - start

    errors = page.locator("[data-mime-type='application/vnd.jupyter.error']")
    assert errors.count() == 0, errors.first.inner_text()
    warnings = page.locator("[data-mime-type='application/vnd.jupyter.stderr']")
    assert warnings.count() == 0, warnings.first.inner_text()
    pictures = page.locator(".jp-RenderedImage img")
    outputs = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
    assert pictures.count() == sum("image/png" in output.get("data", {}) for output in outputs)
    sizes = pictures.evaluate_all("imgs => imgs.map(img => [img.naturalWidth, img.clientWidth])")
    assert min(map(min, sizes)) > 200, sizes
    note(f"{path.stem}: all cells in {seconds:.1f} s, {len(sizes)} figures")

    move_explorer(page, path)


def move_explorer(page, path):
    """Change controls by the keyboard alone, found by their names, and see the picture follow."""
    explorer = page.locator(".dmls2r-explorer")
    picture = explorer.locator("img")
    expect(picture).to_have_count(1)
    assert not page.evaluate(
        f"async () => {{ {AXE}; return (await axe.run('.dmls2r-explorer')).violations }}"
    )
    assert (
        explorer.bounding_box()["height"]
        < page.locator(".jp-WindowedPanel-outer").first.bounding_box()["height"]
    )
    prompt = page.locator(".jp-Cell", has=explorer).last.locator(".jp-InputPrompt")
    prompt.click()
    selected = page.locator(".jp-Cell.jp-mod-selected", has=explorer)
    expect(selected).to_have_count(1)
    n_cells = page.locator(".jp-Cell").count()
    for name, keys in EXPLORERS[path.stem].items():
        control = explorer.get_by_role("slider", name=name, exact=True)
        control = control.or_(explorer.get_by_role("combobox", name=name, exact=True))
        control.focus()
        waits = []
        for key in keys:
            before = picture.get_attribute("src")
            start = time.perf_counter()
            page.keyboard.press(key)
            page.wait_for_function(
                "before => document.querySelector('.dmls2r-explorer img').src !== before",
                arg=before,
                polling=10,
            )
            waits.append(time.perf_counter() - start)
            expect(control).to_be_focused()
        times = ", ".join(f"{1000 * wait:.0f}" for wait in waits)
        note(f"{path.stem}: {name} answers the keys in {times} ms")
    expect(selected).to_have_count(1)
    assert page.locator(".jp-Cell").count() == n_cells
    unsaved = page.locator(".lm-TabBar-tab.lm-mod-current.jp-mod-dirty")
    expect(unsaved).to_have_count(1)
    page.keyboard.press("Control+S")  # JupyterLab's own keys still work
    expect(unsaved).to_have_count(0)
    assert len(picture.get_attribute("alt")) > 30
    assert picture.evaluate("img => img.naturalWidth") > 300
    explorer.evaluate("form => form.scrollIntoView({block: 'center'})")
    page.wait_for_timeout(300)
    page.screenshot(path=SEEN / f"{path.stem}.png")
    for name, box in {"form": explorer.locator("label").first, "sentence": explorer.locator("p")}.items():
        expect(box, name).to_be_in_viewport(ratio=1)


def type_answer(page, first_line, body):
    """Replace the cell that starts with a line, and run it and the check below it."""
    cell = page.locator(".jp-CodeCell", has=page.locator(".cm-line", has_text=first_line)).first
    cell.scroll_into_view_if_needed()
    cell.locator(".cm-content").click()
    page.keyboard.press("Control+A")
    page.keyboard.insert_text(body)
    page.keyboard.press("Shift+Enter")
    page.keyboard.press("Shift+Enter")
    wait_until_idle(page)
    expect(page.locator(".jp-InputPrompt", has_text="[*]")).to_have_count(0)


def test_exercise_answers_at_once(lab, page):
    open_notebook(page, lab("exercises/1_pairwise_modeling.ipynb"))
    run_all(page)
    assert page.locator("[data-mime-type='application/vnd.jupyter.error']").count() == 0
    outputs = page.locator(".jp-CodeCell .jp-OutputArea-output")
    expect(outputs.last).to_contain_text("0 of 12 points, 0 of 6 tasks solved")

    head = "def asymmetry(estimates):"
    type_answer(page, "def asymmetry", f"{head}\n    return (estimates + estimates.T).abs().mean()")
    expect(page.get_by_text("✗ Task 2: two samples – the diagonal")).to_be_visible()
    page.screenshot(path=SEEN / "exercise_wrong.png")

    right = "sums = (estimates + estimates.T).fill_diagonal_(0).abs().sum()\n    n = len(estimates)"
    type_answer(page, "def asymmetry", f"{head}\n    {right}\n    return sums / (n * (n - 1))")
    expect(page.get_by_text("✓ Task 2: two samples")).to_be_visible()
    expect(page.get_by_text("✗ Task 2")).to_have_count(0)
    page.screenshot(path=SEEN / "exercise_right.png")


@pytest.mark.skipif(os.name == "nt", reason="needs make")
def test_make_lab_shows_the_first_notebook(browser, page, tmp_path):
    if Path(sys.prefix) != ROOT / ".venv":
        pytest.skip("needs to run in .venv, as make test does")
    address = tmp_path / "address"
    opener = tmp_path / "browser.sh"
    opener.write_text(f'#!/bin/sh\necho "$1" > {address}.part && mv {address}.part {address}\n')
    opener.chmod(0o755)
    environment = {**settings_of_our_own(tmp_path), "BROWSER": f"{opener} %s"}
    server = subprocess.Popen(["make", "lab"], cwd=ROOT, env=environment, start_new_session=True)
    try:
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
    finally:
        stop(server)
