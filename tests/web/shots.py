"""Pictures of pages, light and dark, wide and narrow: `python -m tests.web.shots FOLDER NAME=PATH…`; a server of its own, demo data."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.servers import Running
from tests.web.browser import chromium, log_in, new_context

SIZES = ((1280, 800), (390, 844))


def shoot(server: Running, folder: Path, pages: dict[str, str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        for width, height in SIZES:
            for dark in (False, True):
                context, watch = new_context(browser, server.url, width=width, height=height, dark=dark)
                page = context.new_page()
                log_in(page, server.onward("token", "login").stdout.strip())
                for name, path in pages.items():
                    page.goto(server.url + path)
                    page.wait_for_load_state("domcontentloaded")
                    page.wait_for_timeout(900)
                    page.screenshot(path=folder / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                context.close()
                print(width, "dark" if dark else "light", *watch.wrong, sep="\n  ")


if __name__ == "__main__":
    to, *given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as own:
        code = Path(own) / "digits"
        code.mkdir()
        (code / "train.py").write_text("print('trained')\n")
        with Running(Path(own), "--demo-data", settings=f'[server]\ncode = ["{code}"]\n') as running:
            shoot(running, Path(to), dict(one.partition("=")[::2] for one in given))
