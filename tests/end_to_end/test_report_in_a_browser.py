"""The page of a comparison in headless Chromium: it fits phones and wide screens, runs and fetches nothing.

Measured by a script that is put into a copy of the page; the copy lacks the page's policy against scripts, so
that escaping alone keeps the scripts in the texts from running.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import hand_made_comparison as made
from transformer_mt.evaluation.comparison import Comparison
from transformer_mt.evaluation.report import render_report

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

MEASURE = """<script>
addEventListener("load", () => {
  const scheme = getComputedStyle(document.body);
  const found = {
    width: innerWidth,
    room: document.documentElement.clientWidth,
    wide: document.documentElement.scrollWidth,
    title: document.title,
    scripts: document.scripts.length,
    fetched: performance.getEntriesByType("resource").map(entry => entry.name),
    ground: scheme.backgroundColor,
    ink: scheme.color,
    label: getComputedStyle(document.querySelector(".chart svg text")).fill,
    line: getComputedStyle(document.querySelector('.chart svg path[style*="--s0"]')).stroke,
  };
  parent.postMessage(JSON.stringify(found), "*");
});
</script>"""

# A window is at least 500 pixels wide, a frame in it as narrow as one likes.
FRAME = """<!DOCTYPE html>
<html style="color-scheme: light dark">
<pre id="measured"></pre>
<script>
addEventListener("message", event => { document.getElementById("measured").textContent = event.data; });
</script>
<iframe src="report.html" style="width: WIDTHpx; height: 900px; border: 0"></iframe>
</html>"""


def hostile() -> Comparison:
    """Texts that are scripts, or cannot be broken, or run from right to left."""
    script = (
        '<script>document.title="ran"</script><img src="http://127.0.0.1:9/x" onerror=document.title="ran">'
    )
    names = ("lstm", f"b{script}", "n" * 120, "مترجم", "e", "f")
    hypotheses = ("字" * 700, script, "n" * 900, "كلب بني يركض", "", "word " * 400)
    one = made.test_set(script, names, (30.0, 31.0, 32.0, 33.0, 34.0, 35.0), hypotheses=hypotheses)
    full = made.comparison(replace(one, note=script), names=names, warnings=(script, "w" * 300))
    long = tuple(
        replace(m, source=("▁piece",) * 40, target=(script,) * 3, weights=((1 / 40,) * 40,) * 3)
        for m in full.attention[0].maps
    )
    return replace(full, attention=(replace(full.attention[0], source="s" * 300, maps=long),))


def measure(page: str, width: int, dark: bool, folder: Path) -> dict[str, Any]:
    """Open a copy of the page in a window so many pixels wide; what its script has found."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"needs a browser to open the page in: none of {', '.join(BROWSERS)} is installed")
    copy, replaced = re.subn(r'<meta http-equiv="Content-Security-Policy"[^>]*>', lambda _: MEASURE, page)
    assert replaced == 1
    (folder / "report.html").write_text(copy, encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(width)), encoding="utf-8")
    done = subprocess.run(
        [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            f"--user-data-dir={folder / 'profile'}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--window-size=1600,900",
            "--virtual-time-budget=5000",
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )
    found = re.search(r'<pre id="measured">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr
    measured: dict[str, Any] = json.loads(html.unescape(found[1]))
    return measured


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1400, False)])
def test_the_page_in_a_browser(width: int, dark: bool, tmp_path: Path) -> None:
    """Pins that nothing stands out of the window, no text runs or fetches, and drawings are light or dark."""
    page = render_report(hostile())
    found = measure(page, width, dark, tmp_path)
    assert found["width"] == width
    assert found["wide"] <= found["room"]
    assert found["title"] != "ran"
    assert found["scripts"] == 1
    assert found["fetched"] == []
    assert found["ground"] == ("rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)")
    assert found["label"] == found["ink"] == ("rgb(232, 234, 237)" if dark else "rgb(27, 31, 36)")
    assert found["line"] == ("rgb(255, 159, 94)" if dark else "rgb(184, 80, 15)")
