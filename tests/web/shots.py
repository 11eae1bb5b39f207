"""Pictures of every page, light and dark, wide and narrow: `python -m tests.web.shots docs/pages [NAME…]` takes those of docs/page.md anew.

Where Pillow is installed they get a palette, which makes them a third of their size.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.servers import Running
from tests.web.browser import chromium, log_in, new_context
from tests.web.tour import STOPS, demo_server, go, with_a_cluster

SIZES = ((1280, 800), (390, 844))


def shoot(server: Running, folder: Path, names: Sequence[str]) -> list[str]:
    """What went wrong meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with chromium() as browser:
        for width, height in SIZES:
            for dark in (False, True):
                context, watch = new_context(browser, server.url, width=width, height=height, dark=dark)
                with_a_cluster(context)
                page = context.new_page()
                log_in(page, server.onward("token", "login").stdout.strip())
                for name in names:
                    go(page, STOPS[name])
                    page.wait_for_timeout(600)  # curves and what else comes a moment later
                    page.screenshot(path=folder / f"{name}-{width}-{'dark' if dark else 'light'}.png")
                context.close()
                wrong += watch.wrong
    return wrong


def shrink(folder: Path) -> None:
    if importlib.util.find_spec("PIL") is None:
        print("pip install pillow would let them be smaller", file=sys.stderr)
        return
    image = importlib.import_module("PIL.Image")
    for path in folder.glob("*.png"):
        with image.open(path) as opened:
            picture = opened.convert("RGB")
        often = sorted(picture.getcolors(1 << 24), reverse=True)[:160]  # surfaces stay as they are
        rare = picture.quantize(96, method=image.Quantize.MAXCOVERAGE).getpalette()  # and a dot keeps its colour
        palette = image.new("P", (1, 1))
        palette.putpalette([*(part for _, colour in often for part in colour), *rare][: 3 * 256])
        picture.quantize(palette=palette, dither=image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    to, *given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as own, demo_server(Path(own)) as running:
        print(*shoot(running, Path(to), given or list(STOPS)), sep="\n")
        shrink(Path(to))
