"""Whether a file is as long as it says itself: zip archives (torch, Keras) end with a directory, safetensors begin with their length."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

_ZIP_BEGIN = b"PK\x03\x04"
_ZIP_END = b"PK\x05\x06"
_ZIP_NAMES = (".pt", ".pth", ".tar", ".ckpt", ".bin", ".keras", ".npz", ".zip")  # `.pth.tar` is no tar archive
_END_SIZE = 22
_LONGEST_COMMENT = 1 << 16
_LONGEST_HEADER = 100 << 20  # the format's own limit


def has_proper_end(path: Path) -> bool:
    """Whether the file's own format says that nothing is missing."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(_ZIP_BEGIN))
        known = begin == _ZIP_BEGIN if path.name.endswith(_ZIP_NAMES) else path.name.endswith(".safetensors") and len(begin) == 4
    except OSError:
        return False
    return known and not is_cut_off(path)


def is_cut_off(path: Path) -> bool:
    """Whether the file surely lacks its end. False where its format does not tell."""
    try:
        if path.name.endswith(_ZIP_NAMES):
            return _zip_without_end(path)
        if path.name.endswith(".safetensors"):
            return _tensors_without_end(path)
    except OSError:
        return False  # gone, or a folder: not ours to judge
    return False


def _zip_without_end(path: Path) -> bool:
    with path.open("rb") as file:
        if file.read(len(_ZIP_BEGIN)) != _ZIP_BEGIN:
            return False
        size = file.seek(0, os.SEEK_END)
        for tail in (_END_SIZE, _END_SIZE + _LONGEST_COMMENT):
            file.seek(max(0, size - tail))
            end = file.read()
            at = end.rfind(_ZIP_END)
            if at >= 0 and len(end) >= at + _END_SIZE + int.from_bytes(end[at + _END_SIZE - 2 : at + _END_SIZE], "little"):
                return False
    return True


def _tensors_without_end(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        begin = file.read(8)
        if len(begin) < 8:
            return False
        (length,) = struct.unpack("<Q", begin)
        if length > _LONGEST_HEADER:
            return False  # no safetensors after all
        header = file.read(length)
    if len(header) < length:
        return header.startswith(b"{")
    try:
        tensors = [entry for name, entry in json.loads(header).items() if name != "__metadata__"]
        return bool(size < 8 + length + max((int(entry["data_offsets"][1]) for entry in tensors), default=0))
    except (ValueError, TypeError, KeyError, AttributeError, IndexError):
        return False
