"""Screenshots of every page at 1280 and 390 pixels, in light and dark, to be looked at one by one.

    python scripts/screenshots.py FOLDER

It needs playwright and Debian's package chromium, as the tests do.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dpassay

SIZES = {"desk": (1280, 800), "phone": (390, 844)}
SERVED = {
    "page": "",
    "page-delta": "?pipeline=query(l2, 1) | gaussian(2)&epsilon=2&delta=1e-5",
    "page-error": "?pipeline=clip(l2, 1) | clop(1)&epsilon=1&dim=4",
    "gallery": "gallery",
    "claim": "gallery/adept",
    "missing": "gallery/nobody",
    "proof": "proofs/laplace",
    "learn": "learn",
}


def write_reports(folder: Path) -> list[Path]:
    """Reports of a check with δ and of a published claim."""
    checked = {
        "report": dpassay.check("query(l2, 1) | gaussian(2)", epsilon=2, delta="1e-5"),
        "report-refuted": dpassay.check("adept"),
    }
    made = []
    for name, verdict in checked.items():
        made.append(folder / f"{name}.html")
        made[-1].write_text(verdict.to_html(f"dpassay check {verdict.name}"), encoding="utf-8")
    return made


def shoot(browser: Any, name: str, address: str, folder: Path) -> None:
    """Four pictures of one page."""
    for device, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            page.goto(address, timeout=120_000)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(800)
            page.screenshot(path=str(folder / f"{name}-{device}-{scheme}.png"), full_page=True)
            page.close()


def main(folder: Path) -> None:
    """Write all pictures into a folder."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "dpassay", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        try:
            assert server.stderr is not None
            found = re.search(r"http://\S+", server.stderr.readline())
            assert found is not None
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, path in SERVED.items():
                shoot(browser, name, found[0] + path, folder)
            for report in write_reports(folder):
                shoot(browser, report.stem, report.resolve().as_uri(), folder)
            browser.close()
        finally:
            server.terminate()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
