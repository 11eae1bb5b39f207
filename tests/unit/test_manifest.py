from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from onward.checkpoints.manifest import MANIFEST, FileEntry, Manifest, check_sizes, read_manifest, verify
from onward.checkpoints.publishing.publish import publish
from onward.errors import CheckpointDamaged
from onward.model.checkpoint import CheckpointName

CONTENT = {"model.pt": b"m" * 3000, "deep/optim.pt": b"o" * 500, "empty": b""}


@pytest.fixture
def good(tmp_path: Path) -> Path:
    sources = {}
    for name, content in CONTENT.items():
        path = tmp_path / "local" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        sources[name] = path
    publish(sources, tmp_path / "store", CheckpointName(2, 100), created=5.0, metrics={"loss": 0.25})
    return tmp_path / "store" / "leg-0002.step-00000100"


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads((folder / MANIFEST).read_text())
    change(data)
    (folder / MANIFEST).write_text(json.dumps(data))


def test_a_good_checkpoint_verifies_and_says_what_it_is(good: Path) -> None:
    manifest = verify(good)
    assert manifest.name == CheckpointName(2, 100)
    assert {name: entry.size for name, entry in manifest.files.items()} == {name: len(content) for name, content in CONTENT.items()}
    checkpoint = manifest.checkpoint()
    assert (checkpoint.bytes, checkpoint.created, checkpoint.metrics) == (3500, 5.0, {"loss": 0.25})


@pytest.mark.parametrize("at", [0, 1500, 2999])
def test_a_flipped_byte_is_found(good: Path, at: int) -> None:
    data = bytearray(CONTENT["model.pt"])
    data[at] ^= 1
    (good / "model.pt").write_bytes(data)
    check_sizes(good, read_manifest(good))
    with pytest.raises(CheckpointDamaged, match=r"leg-0002\.step-00000100: model\.pt does not match its hash"):
        verify(good)


def test_a_truncated_file_is_found_at_the_quick_look(good: Path) -> None:
    os.truncate(good / "deep" / "optim.pt", 499)
    with pytest.raises(CheckpointDamaged, match=r"deep/optim\.pt has 499 bytes, expected 500"):
        check_sizes(good, read_manifest(good))


def test_a_missing_file_is_found_at_the_quick_look(good: Path) -> None:
    (good / "empty").unlink()
    with pytest.raises(CheckpointDamaged, match="empty is missing"):
        check_sizes(good, read_manifest(good))


def test_a_missing_manifest_is_damage(good: Path) -> None:
    (good / MANIFEST).unlink()
    with pytest.raises(CheckpointDamaged, match=r"has no manifest\.json"):
        verify(good)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '{"leg": 2}', '{"algorithm": "sha256"}', "\ufffd"])
def test_a_manifest_that_cannot_be_read_is_damage_and_no_crash(good: Path, text: str) -> None:
    (good / MANIFEST).write_text(text)
    with pytest.raises(CheckpointDamaged, match=r"leg-0002\.step-00000100"):
        verify(good)


@pytest.mark.parametrize("name", ["../outside", "a/../../outside", "/etc/passwd", "", "..", "a\0b"])
def test_a_name_that_leads_out_of_the_checkpoint_is_refused(good: Path, name: str) -> None:
    (good.parent / "outside").write_bytes(b"")
    rewrite(good, lambda data: data["files"].update({name: data["files"]["empty"]}))
    with pytest.raises(CheckpointDamaged, match="which is outside the checkpoint"):
        verify(good)


@pytest.mark.parametrize("target", ["/etc", "../other", "a/../../b"])
def test_a_link_that_leads_out_of_the_checkpoint_is_refused(good: Path, target: str) -> None:
    rewrite(good, lambda data: data["files"].update({"latest": {"size": 0, "hash": "", "link": target}}))
    (good / "latest").symlink_to(target)
    with pytest.raises(CheckpointDamaged, match="leads outside the checkpoint"):
        verify(good)


def test_a_link_that_points_elsewhere_than_it_did_is_damage(good: Path) -> None:
    rewrite(good, lambda data: data["files"].update({"latest": {"size": 0, "hash": "", "link": "deep"}}))
    (good / "latest").symlink_to("deep")
    verify(good)
    (good / "latest").unlink()
    (good / "latest").symlink_to("elsewhere")
    with pytest.raises(CheckpointDamaged, match="not a link to deep"):
        verify(good)


def test_a_checkpoint_copied_under_another_name_is_not_taken_for_that_one(good: Path) -> None:
    """Else deleting the copy by what its manifest says would delete the original."""
    good.rename(good.parent / "leg-0003.step-00000100")
    with pytest.raises(CheckpointDamaged, match=r"belongs to leg-0002\.step-00000100"):
        read_manifest(good.parent / "leg-0003.step-00000100")


def test_an_unknown_hash_is_not_called_good(good: Path) -> None:
    rewrite(good, lambda data: data.update(algorithm="xxh3"))
    with pytest.raises(CheckpointDamaged, match="xxh3"):
        verify(good)


def test_files_that_the_manifest_does_not_name_do_no_harm(good: Path) -> None:
    (good / "notes.txt").write_text("a user's own")
    assert "notes.txt" not in verify(good).files


def test_a_manifest_is_plain_json_that_others_can_read() -> None:
    text = Manifest(leg=1, step=2, created=3.0, files={"a": FileEntry(size=1, hash="ff")}).to_json()
    assert json.loads(text) == {
        "schema": 1,
        "leg": 1,
        "step": 2,
        "created": 3.0,
        "algorithm": "sha256-tree",
        "made_by": "sdk",
        "metrics": {},
        "files": {"a": {"size": 1, "hash": "ff"}},
    }
