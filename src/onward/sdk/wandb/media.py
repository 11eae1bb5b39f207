"""What W&B's scripts log beside numbers: images, tables, sounds. Each becomes a file among the run's artifacts, or says once that it
does not.

Standard library only: arrays and pictures are asked by the methods they have, so that their libraries are used where they are loaded.
"""

from __future__ import annotations

import csv
import io
import math
import struct
import sys
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.sdk.stderr import say_once
from onward.sdk.unmanaged.folder import safe_file_name
from onward.sdk.wandb.artifact import keep_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Contents = Iterable[tuple[str, bytes]]  # suffix of the name, what is in it


class Media:
    kind = "media"
    folder = "media/files"

    def contents(self) -> Contents:
        """What to write. It may raise anything: a warning is printed, and nothing is stored."""
        return ()

    def keep(self, room: Path, stem: str) -> Iterator[Path]:
        for suffix, data in self.contents():
            name = Path(self.folder) / (safe_file_name(stem) + suffix)
            if keep_file(data, room / name):
                yield name

    def numbers(self, key: str) -> dict[str, float]:
        """The metrics in it."""
        return {}


class _OfAFile(Media):
    """From a path, or from data that is made a file here."""

    suffix = ""

    def __init__(self, data_or_path: Any, caption: str | None = None, **others: Any) -> None:
        self.data = data_or_path
        self.caption = caption
        self.others = others

    def contents(self) -> Contents:
        if isinstance(self.data, (str, Path)) and Path(self.data).is_file():
            path = Path(self.data)
            return [(path.suffix or self.suffix, path.read_bytes())]
        return [(self.suffix, self.encoded())]

    def encoded(self) -> bytes:
        raise ValueError(f"{type(self).__name__} from {type(self.data).__name__} cannot be stored; pass the path of a file")


class Image(_OfAFile):
    """From a path, a picture of PIL's, a figure of matplotlib's, or an array: height × width (× 1, 3 or 4)."""

    kind, folder, suffix = "image", "media/images", ".png"

    def encoded(self) -> bytes:
        held = io.BytesIO()
        figure = self.data.gcf() if hasattr(self.data, "gcf") else self.data  # pyplot itself
        if hasattr(figure, "savefig"):
            figure.savefig(held, format="png")
        elif hasattr(figure, "save") and not hasattr(figure, "shape"):
            figure.save(held, format="PNG")
        else:
            return _png(*_pixels(figure))
        return held.getvalue()


class Audio(_OfAFile):
    kind, folder, suffix = "audio", "media/audio", ".wav"

    def encoded(self) -> bytes:
        import wave

        values = [value for row in _nested(self.data) for value in (row if isinstance(row, list) else [row])]
        channels = len(_nested(self.data)[0]) if isinstance(_nested(self.data)[0], list) else 1
        whole = [max(-32768, min(32767, round(value * 32767) if isinstance(value, float) else value)) for value in values]
        held = io.BytesIO()
        with wave.open(held, "wb") as file:
            file.setparams((channels, 2, int(self.others.get("sample_rate") or 44100), 0, "NONE", ""))
            file.writeframes(struct.pack(f"<{len(whole)}h", *whole))
        return held.getvalue()


class Video(_OfAFile):
    kind, folder, suffix = "video", "media/videos", ".mp4"


class Object3D(_OfAFile):
    kind, folder, suffix = "object", "media/object3D", ".json"


class Html(_OfAFile):
    """From a path, an open file, or the HTML itself."""

    kind, folder, suffix = "html", "media/html", ".html"

    def contents(self) -> Contents:
        text = self.data.read() if hasattr(self.data, "read") else str(self.data)
        if len(text) < 4096 and "<" not in text and Path(text).is_file():
            return [(".html", Path(text).read_bytes())]
        return [(".html", text if isinstance(text, bytes) else text.encode())]


class Plotly(Html):
    """A plotly figure, as the HTML that it writes."""

    def __init__(self, val: Any, **others: Any) -> None:
        super().__init__(val.to_html(include_plotlyjs="cdn"), **others)


class Table(Media):
    """Rows and columns, stored as CSV. Cells that are neither text nor number are written as their str()."""

    kind, folder = "table", "media/table"

    def __init__(self, columns: Any = None, data: Any = None, rows: Any = None, dataframe: Any = None, **others: Any) -> None:
        frame = dataframe if dataframe is not None else data if hasattr(data, "itertuples") else None
        if frame is not None:
            columns, data = [str(name) for name in frame.columns], [list(row) for row in frame.itertuples(index=False)]
        given = data if data is not None else rows
        self.data: list[list[Any]] = [list(row) for row in (given if given is not None else ())]
        width = len(self.data[0]) if self.data else 3
        self.columns: list[str] = [str(name) for name in columns] if columns is not None else [str(n + 1) for n in range(width)]

    def add_data(self, *row: Any) -> None:
        self.data.append(list(row))

    def add_row(self, *row: Any) -> None:
        self.add_data(*row)

    def add_column(self, name: str, data: Sequence[Any], optional: bool = False) -> None:
        self.columns.append(str(name))
        self.data = self.data or [[] for _ in data]
        for row, value in zip(self.data, data):
            row.append(value)

    def get_column(self, name: str, convert_to: str | None = None) -> list[Any]:
        return [row[self.columns.index(name)] for row in self.data]

    def contents(self) -> Contents:
        held = io.StringIO()
        write = csv.writer(held)
        write.writerow(self.columns)
        for row in self.data:
            write.writerow([cell if isinstance(cell, (str, int, float, type(None))) else _words(cell) for cell in row])
        return [(".csv", held.getvalue().encode())]


class Histogram(Media):
    """Its lowest, mean and highest value become metrics `NAME.min`, `NAME.mean`, `NAME.max`; its bins are not stored."""

    def __init__(self, sequence: Any = None, np_histogram: Any = None, num_bins: int = 64) -> None:
        self._values, self._bins = sequence, np_histogram

    def numbers(self, key: str) -> dict[str, float]:
        say_once("a Histogram is stored as the metrics min, mean and max")
        if self._bins is not None:
            counts, edges = _nested(self._bins[0]), _nested(self._bins[1])
            middles = [(low + high) / 2 for low, high in zip(edges, edges[1:])]
            mean = sum(c * m for c, m in zip(counts, middles)) / (sum(counts) or 1)
            return {f"{key}.min": float(edges[0]), f"{key}.mean": float(mean), f"{key}.max": float(edges[-1])}
        given = self._values.detach() if hasattr(self._values, "detach") else self._values
        if hasattr(given, "mean") and hasattr(given, "min"):  # an array: at its own speed
            return {f"{key}.{word}": float(getattr(given, word)()) for word in ("min", "mean", "max")}
        values = [float(value) for value in given]
        return {f"{key}.min": min(values), f"{key}.mean": math.fsum(values) / len(values), f"{key}.max": max(values)}


class Unkept(Media):
    """A type that Onward does not store; it only warns once."""

    def __init__(self, what: str) -> None:
        say_once(f"{what} is accepted but not stored")


def as_media(value: object) -> list[Media] | None:
    """Media as they are, or a value that can become media; None: neither."""
    if isinstance(value, Media):
        return [value]
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, Media) for one in value):
        return list(value)
    if hasattr(value, "savefig") or hasattr(value, "gcf"):
        return [Image(value)]
    pillow = sys.modules.get("PIL.Image")
    if pillow is not None and isinstance(value, pillow.Image):
        return [Image(value)]
    if hasattr(value, "itertuples") and hasattr(value, "columns"):
        return [Table(dataframe=value)]
    if hasattr(value, "to_html") and hasattr(value, "to_plotly_json"):
        return [Plotly(value)]
    return None


def _words(cell: Any) -> str:
    return f"<{type(cell).__name__}>" if isinstance(cell, Media) else str(cell)


def _nested(array: Any) -> list[Any]:
    """An array of any library as lists."""
    for name in ("detach", "cpu", "numpy"):
        array = getattr(array, name)() if hasattr(array, name) else array
    return list(array.tolist() if hasattr(array, "tolist") else array)


def _pixels(picture: Any) -> tuple[int, int, int, bytes]:
    """Width, height, values a pixel, and all of them from 0 to 255, by row. PyTorch has the colours first."""
    if hasattr(picture, "detach"):
        picture = picture.detach().cpu()
        picture = picture.permute(1, 2, 0) if len(picture.shape) == 3 and picture.shape[0] in (1, 3, 4) else picture
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        array = numpy.asarray(picture)
        array = array[..., None] if array.ndim == 2 else array
        if array.ndim != 3 or not array.size:
            raise ValueError(f"an image is height × width (× colours), this has {array.ndim} dimensions")
        scale = 255.0 if array.dtype.kind == "f" and array.max() <= 1.0 else 1.0
        whole = array if array.dtype == "uint8" else numpy.clip(numpy.rint(array * scale), 0, 255).astype("uint8")
        return array.shape[1], array.shape[0], array.shape[2], whole.tobytes()
    values = _nested(picture)
    values = values if isinstance(values[0][0], list) else [[[value] for value in row] for row in values]
    numbers = [number for row in values for pixel in row for number in pixel]
    scale = 255.0 if any(isinstance(number, float) for number in numbers) and max(numbers) <= 1.0 else 1.0
    data = bytes(max(0, min(255, round(number * scale))) for number in numbers)
    return len(values[0]), len(values), len(values[0][0]), data


def _png(width: int, height: int, depth: int, data: bytes) -> bytes:
    colours = {1: 0, 2: 4, 3: 2, 4: 6}.get(depth)
    if colours is None:
        raise ValueError(f"an image has 1, 3 or 4 values per pixel, this has {depth}")
    length = width * depth
    lines = b"".join(b"\0" + data[at : at + length] for at in range(0, height * length, length))
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colours, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
