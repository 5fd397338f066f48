"""Screenshots of every page at 1280 and 390 pixels, in light and dark, to be looked at one by one.

    python scripts/screenshots.py FOLDER [AXE]

It needs playwright and Debian's package chromium, as the tests do. AXE is axe.min.js of the npm package axe-core:
with it, the violations of accessibility rules on every page are printed, and a page that has one fails the command.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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
REPORTS = {
    "report": ["check", "--pipeline", "query(l2, 1) | gaussian(2)", "--epsilon", "2", "--delta", "1e-5"],
    "report-refuted": ["check", "adept"],
    "report-audit": ["audit", "adept"],
    "report-trace": [
        *[
            "trace",
            "--python",
            "docs.examples.shared_noise:encode",
            "--pair",
            "[[1, 0, 0], [0, 1, 0]]",
            "--epsilon",
            "1",
        ]
    ],
    "report-gallery": ["gallery"],
    "report-packages": ["packages"],
    "report-scan": ["scan", "tests/wrong_programs"],
}
SITE = ["index", "tutorial", "concepts", "claims/adept", "proofs/laplace", "reference/python", "notebooks/review"]


def write_reports(folder: Path) -> list[Path]:
    """The pages that commands write."""
    made = []
    for name, command in REPORTS.items():
        made.append(folder / f"{name}.html")
        options = ["--html", str(made[-1])]
        subprocess.run([sys.executable, "-m", "dpassay", *command, *options], capture_output=True, check=False)
    return made


def shoot(browser: Any, name: str, address: str, folder: Path, axe: Path | None) -> int:
    """Four pictures of one page; the number of violations."""
    found = 0
    for device, (width, height) in SIZES.items():
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True)
            page.goto(address, timeout=120_000)
            page.wait_for_load_state("networkidle")
            page.wait_for_timeout(800)
            page.screenshot(path=str(folder / f"{name}-{device}-{scheme}.png"), full_page=True)
            wide = page.evaluate("document.documentElement.scrollWidth")
            if wide > width:
                print(f"{name}, {device}, {scheme}: {wide} pixels wide")
            if axe is not None:
                found += violations(page, f"{name}, {device}, {scheme}", axe)
            page.close()
    return found


def violations(page: Any, where: str, axe: Path) -> int:
    """Print what axe-core finds, with everything unfolded."""
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    page.evaluate(axe.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run().then((result) => result.violations)")
    for one in found:
        print(f"{where}: {one['id']} ({one['impact']}): {one['help']}")
        for node in one["nodes"][:3]:
            print(f"    {node['html'][:150]}\n    {(node['failureSummary'] or '')[:300]}")
    return len(found)


def main(folder: Path, axe: Path | None = None) -> int:
    """Write all pictures into a folder; the number of violations."""
    from playwright.sync_api import sync_playwright

    folder.mkdir(parents=True, exist_ok=True)
    found = 0
    command = [sys.executable, "-m", "dpassay", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, sync_playwright() as playwright:
        try:
            assert server.stderr is not None
            at = re.search(r"http://\S+", server.stderr.readline())
            assert at is not None
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            for name, path in SERVED.items():
                found += shoot(browser, name, at[0] + path, folder, axe)
            pages = {report.stem: report for report in write_reports(folder)}
            built = Path(__file__).parents[1] / "out" / "site"  # by `make docs`
            pages |= {f"site-{name.replace('/', '-')}": built / f"{name}.html" for name in SITE}
            for name, path in pages.items():
                if path.is_file():
                    found += shoot(browser, name, path.resolve().as_uri(), folder, axe)
                else:
                    print(f"{name}: there is no {path}")
            browser.close()
        finally:
            server.terminate()
    print(f"{len(list(folder.glob('*.png')))} pictures in {folder}, {found} violations")
    return found


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:3])) > 0)
