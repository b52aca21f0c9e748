"""The browser of these tests; by its fixture they get their marker."""

from __future__ import annotations

import shutil

import pytest

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    """A running Chromium."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if found is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()
