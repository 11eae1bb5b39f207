from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.checkpoints import copying, disk_space
from onward.checkpoints.copying import SourceChanged, write_at
from onward.checkpoints.manifest import MANIFEST, verify
from onward.checkpoints.publishing import publish as publishing
from onward.checkpoints.publishing.delete_old import delete
from onward.checkpoints.publishing.publish import publish, remove_partials, restore
from onward.checkpoints.restoring.newest import published_names_of, restore_newest
from onward.errors import CheckpointDamaged, StorageError, StorageFull, TakenOver
from onward.model.checkpoint import CheckpointName
from tests.disks import refuse_room, small_disk

NAME = CheckpointName(1, 100)


@pytest.fixture
def sources(tmp_path: Path) -> dict[str, Path]:
    return write(tmp_path / "local", {"model.pt": b"m" * 5000, "deep/er/optim.pt": b"o" * 300})


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def write(folder: Path, content: dict[str, bytes]) -> dict[str, Path]:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return {name: folder / name for name in content}


class Killed(BaseException):
    pass


# ── whole or not at all ───────────────────────────────────────────────────────


def test_what_is_published_verifies_and_is_what_was_saved(sources: dict[str, Path], store: Path) -> None:
    manifest = publish(sources, store, NAME, created=1.0, made_by="files", metrics={"loss": 1.0})
    assert verify(store / str(NAME)) == manifest
    assert (store / str(NAME) / "deep" / "er" / "optim.pt").read_bytes() == b"o" * 300
    assert os.listdir(store) == [str(NAME)]


@pytest.mark.parametrize("call", ["open", "write", "pwrite", "fsync", "close", "rename", "replace", "mkdir", "fallocate"])
def test_killed_before_or_after_any_call_a_name_is_whole_or_not_there(
    sources: dict[str, Path], store: Path, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dies at the 1st, 2nd, 3rd … of these calls, before it and after it, until a publish gets through."""
    place = disk_space if call == "fallocate" else os
    real: Callable[..., object] = getattr(place, call)
    for nth in range(1, 200):
        for after in (False, True):
            count = 0

            def dying(*arguments: object, nth: int = nth, after: bool = after, **options: object) -> object:
                nonlocal count
                count += 1
                if count == nth and not after:
                    raise Killed
                answer = real(*arguments, **options)
                if count == nth:
                    raise Killed
                return answer

            with monkeypatch.context() as patch:
                patch.setattr(place, call, dying)
                try:
                    publish(sources, store, CheckpointName(1, nth), created=1.0)
                except Killed:
                    pass
            for name in published_names_of(store):
                verify(store / str(name))
            if count < nth:
                assert nth > 1, f"{call} was never called"
                verify(store / str(CheckpointName(1, nth)))
                return
            publish(sources, store, CheckpointName(1, nth), created=1.0)
            verify(store / str(CheckpointName(1, nth)))
            delete(store, CheckpointName(1, nth))
    raise AssertionError("no publish got through")


def test_everything_is_flushed_before_the_name_appears(sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    real_fsync, real_rename = os.fsync, os.rename

    def fsync(handle: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{handle}"))
        real_fsync(handle)

    def rename(old: Path, new: Path) -> None:
        before = {os.path.relpath(path, old) for path in flushed}
        assert before >= {"model.pt", "deep/er/optim.pt", "deep/er", "deep", "."}, before
        assert any(name.startswith(".manifest.json") for name in before)
        flushed.clear()
        real_rename(old, new)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    publish(sources, store, NAME, created=1.0)
    assert flushed == [str(store)]


def test_publishing_twice_is_publishing_once(sources: dict[str, Path], store: Path) -> None:
    first = publish(sources, store, NAME, created=1.0)
    assert publish(sources, store, NAME, created=2.0) == first


# ── a later version of the same checkpoint ────────────────────────────────────


def test_a_later_version_takes_the_place_of_the_one_before(sources: dict[str, Path], store: Path, tmp_path: Path) -> None:
    publish(sources, store, NAME, created=1.0)
    later = write(tmp_path / "later", {"model.pt": b"m", "late.pt": b"l"})
    manifest = publish(later, store, NAME, created=2.0, replace=True)
    assert verify(store / str(NAME)) == manifest and sorted(manifest.files) == ["late.pt", "model.pt"]
    assert os.listdir(store) == [str(NAME)]


@pytest.mark.parametrize("renames", [0, 1, 2])
def test_killed_while_a_version_is_replaced_one_of_both_is_there_for_the_next(
    sources: dict[str, Path], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    old = publish(sources, store, NAME, created=1.0)
    later = write(tmp_path / "later", {"model.pt": b"m"})
    real, done = os.rename, 0

    def rename(source: Path, target: Path) -> None:
        nonlocal done
        if done == renames:
            raise Killed
        done += 1
        real(source, target)

    with monkeypatch.context() as killed, pytest.raises(Killed):
        killed.setattr(os, "rename", rename)
        if renames == 2:
            killed.setattr(publishing, "sync_folder", lambda folder: (_ for _ in ()).throw(Killed) if folder == store else None)
        publish(later, store, NAME, created=2.0, replace=True)
    remove_partials(store, before_leg=2)
    assert os.listdir(store) == [str(NAME)]
    assert (verify(store / str(NAME)) == old) == (renames < 2)


def test_files_that_changed_before_the_name_appears_are_not_published(sources: dict[str, Path], store: Path) -> None:
    old = publish(sources, store, NAME, created=1.0)
    with pytest.raises(SourceChanged, match="step 100 changed"):
        publish(sources, store, NAME, created=2.0, replace=True, unchanged=lambda: False)
    assert os.listdir(store) == [str(NAME)] and verify(store / str(NAME)) == old
    publish(sources, store, CheckpointName(1, 101), created=2.0, unchanged=lambda: True)


def test_a_partial_of_a_killed_predecessor_is_in_nobodys_way(sources: dict[str, Path], store: Path) -> None:
    partial = store / f".{NAME}.node7.example.org-12-ab.partial"
    write(partial, {"model.pt": b"half", "junk": b"junk"})
    publish(sources, store, NAME, created=1.0)
    assert "junk" not in verify(store / str(NAME)).files
    assert not (store / str(NAME) / "junk").exists()
    remove_partials(store, before_leg=NAME.leg)
    assert partial.exists(), "it may be another's, at work just now"
    remove_partials(store, before_leg=NAME.leg, publisher_of=NAME.leg)
    assert not partial.exists()


def test_several_that_publish_the_same_checkpoint_do_not_touch_each_others_files(sources: dict[str, Path], store: Path) -> None:
    failed: list[Exception] = []

    def carry() -> None:
        try:
            publish(sources, store, NAME, created=1.0)
        except Exception as error:
            failed.append(error)

    for _ in range(20):
        together = [threading.Thread(target=carry) for _ in range(4)]
        for thread in together:
            thread.start()
        for thread in together:
            thread.join()
        assert not failed
        assert os.listdir(store) == [str(NAME)]
        verify(store / str(NAME))
        delete(store, NAME)


def test_a_published_checkpoint_that_lacks_files_is_published_again(sources: dict[str, Path], store: Path) -> None:
    publish(sources, store, NAME, created=1.0)
    next(path for path in (store / str(NAME)).rglob("*") if path.is_file() and path.name != MANIFEST).unlink()
    publish(sources, store, NAME, created=2.0)
    verify(store / str(NAME))
    assert os.listdir(store) == [str(NAME)]


def test_a_leg_that_was_taken_over_while_it_copied_publishes_nothing(sources: dict[str, Path], store: Path) -> None:
    def fenced() -> None:
        raise TakenOver("leg 2 has begun")

    with pytest.raises(TakenOver):
        publish(sources, store, NAME, created=1.0, fenced=fenced)
    assert os.listdir(store) == []


def test_a_file_that_changes_while_it_is_copied_is_not_published(
    sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changing(handle: int, data: memoryview, at: int) -> None:
        with sources["model.pt"].open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(copying, "write_at", changing)
    with pytest.raises(SourceChanged, match=r"model\.pt changed|optim\.pt changed"):
        publish(sources, store, NAME, created=1.0)
    assert os.listdir(store) == []


def test_a_file_rewritten_in_place_while_it_is_copied_is_not_published(
    sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rewriting(handle: int, data: memoryview, at: int) -> None:
        write_at(handle, data, at)
        sources["model.pt"].write_bytes(b"n" * 5000)

    monkeypatch.setattr(copying, "write_at", rewriting)
    with pytest.raises(SourceChanged):
        publish(sources, store, NAME, created=1.0)
    assert os.listdir(store) == []


def test_a_file_that_goes_away_while_it_is_copied_is_not_the_disks_fault(sources: dict[str, Path], store: Path) -> None:
    sources["model.pt"].unlink()
    with pytest.raises(SourceChanged, match=r"model\.pt disappeared"):
        publish(sources, store, NAME, created=1.0)
    assert os.listdir(store) == []


def test_a_checkpoint_with_a_manifest_of_its_own_is_refused_and_says_why(tmp_path: Path, store: Path) -> None:
    with pytest.raises(StorageError, match=r"manifest\.json") as caught:
        publish(write(tmp_path / "local", {"manifest.json": b"{}"}), store, NAME, created=1.0)
    assert "another name" in caught.value.hint
    assert not store.exists()
    publish(write(tmp_path / "local", {"deep/manifest.json": b"{}"}), store, NAME, created=1.0)
    verify(store / str(NAME))


def test_a_link_to_a_folder_beside_it_is_published_and_restored_as_a_link(tmp_path: Path, store: Path) -> None:
    sources = write(tmp_path / "local", {"step-100/w": b"x"})
    (tmp_path / "local" / "latest").symlink_to("step-100")
    publish({**sources, "latest": tmp_path / "local" / "latest"}, store, NAME, created=1.0)
    verify(store / str(NAME))
    restore(store / str(NAME), tmp_path / "resume")
    assert os.readlink(tmp_path / "resume" / "latest") == "step-100"
    assert (tmp_path / "resume" / "latest" / "w").read_bytes() == b"x"


# ── a full store ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("number", "words"), [(errno.ENOSPC, "is full"), (errno.EDQUOT, "your quota on")])
def test_a_full_store_is_said_with_path_and_need_and_leaves_nothing(
    sources: dict[str, Path], store: Path, number: int, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(sources, store, CheckpointName(1, 50), created=1.0)
    with monkeypatch.context() as full:
        refuse_room(full, number)
        with pytest.raises(StorageFull) as caught:
            publish(sources, store, NAME, created=1.0)
    assert words in caught.value.message and str(store) in caught.value.message and "5.3 kB" in caught.value.message
    assert caught.value.hint and caught.value.transient
    assert os.listdir(store) == ["leg-0001.step-00000050"]
    verify(store / "leg-0001.step-00000050")
    publish(sources, store, NAME, created=1.0)


def test_a_really_full_disk_keeps_the_last_good_one_and_takes_the_next_when_there_is_room(tmp_path: Path) -> None:
    sources = write(tmp_path / "local", {"a.pt": b"a" * 60_000, "b.pt": b"b" * 60_000})
    with small_disk(tmp_path / "disk", kilobytes=200) as disk:
        publish(sources, disk, CheckpointName(1, 1), created=1.0)
        with pytest.raises(StorageFull, match=r"120\.0 kB, .* are free"):
            publish(sources, disk, CheckpointName(1, 2), created=1.0)
        assert os.listdir(disk) == ["leg-0001.step-00000001"]
        verify(disk / "leg-0001.step-00000001")
        delete(disk, CheckpointName(1, 1))
        publish(sources, disk, CheckpointName(1, 2), created=1.0)
        verify(disk / "leg-0001.step-00000002")


def test_a_file_system_that_cannot_reserve_is_simply_written_to(
    sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_room(monkeypatch, errno.EOPNOTSUPP)
    publish(sources, store, NAME, created=1.0)
    verify(store / str(NAME))


def test_a_store_that_may_not_be_written_to_is_an_error_of_storage(tmp_path: Path, sources: dict[str, Path]) -> None:
    (tmp_path / "store").write_text("a file is in the way")
    with pytest.raises(StorageError, match="cannot be written"):
        publish(sources, tmp_path / "store", NAME, created=1.0)


# ── restoring ─────────────────────────────────────────────────────────────────


def test_what_is_restored_is_what_was_published_without_what_lay_there(sources: dict[str, Path], store: Path, tmp_path: Path) -> None:
    publish(sources, store, NAME, created=1.0)
    write(tmp_path / "resume", {"of an earlier leg": b""})
    restore(store / str(NAME), tmp_path / "resume")
    found = {str(p.relative_to(tmp_path / "resume")): p.read_bytes() for p in (tmp_path / "resume").rglob("*") if p.is_file()}
    assert found == {"model.pt": b"m" * 5000, "deep/er/optim.pt": b"o" * 300}


def test_a_damaged_one_is_not_restored_and_leaves_nothing(sources: dict[str, Path], store: Path, tmp_path: Path) -> None:
    publish(sources, store, NAME, created=1.0)
    (store / str(NAME) / "model.pt").write_bytes(b"n" * 5000)
    with pytest.raises(CheckpointDamaged, match="hash"):
        restore(store / str(NAME), tmp_path / "resume")
    assert not (tmp_path / "resume").exists()


def test_a_full_node_disk_is_not_called_damage(
    sources: dict[str, Path], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(sources, store, NAME, created=1.0)
    with monkeypatch.context() as full:
        refuse_room(full)
        with pytest.raises(StorageFull, match=r"needs 5\.3 kB there"):
            restore(store / str(NAME), tmp_path / "resume")
    assert not (tmp_path / "resume").exists()


def test_a_node_disk_too_full_for_a_folder_is_not_called_damage(sources: dict[str, Path], store: Path, tmp_path: Path) -> None:
    publish(sources, store, NAME, created=1.0)
    with small_disk(tmp_path / "disk", kilobytes=4) as disk:
        for number in range(1000):
            try:
                (disk / str(number)).mkdir()
            except OSError:
                break
        with pytest.raises(StorageFull):
            restore(store / str(NAME), disk / "resume")


# ── letting go ────────────────────────────────────────────────────────────────


def test_deleting_takes_the_name_away_by_one_rename(sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(sources, store, NAME, created=1.0)
    seen: list[list[CheckpointName]] = []
    monkeypatch.setattr(shutil, "rmtree", lambda path, ignore_errors: seen.append(published_names_of(store)))
    delete(store, NAME)
    assert seen == [[]]
    assert (store / f".deleting-{NAME}" / "model.pt").exists(), "file by file, after the rename"


def test_deleting_what_is_gone_is_no_error(store: Path) -> None:
    store.mkdir()
    delete(store, NAME)


def test_only_our_own_leftovers_of_earlier_legs_are_cleared_away(store: Path) -> None:
    ours = [".leg-0001.step-00000005.partial", ".leg-0002.step-00000009.partial", ".deleting-leg-0003.step-00000001"]
    others = [
        *(".leg-0003.step-00000007.partial", ".leg-x.partial", ".deleting-my-notes", ".hidden", "notes"),
        *("leg-0001.step-00000001", "leg-0001.step-00000001.bak", ".leg-0001.step-00000005.partial.kept"),
    ]
    for name in (*ours, *others):
        write(store / name, {"file": b""})
    remove_partials(store, before_leg=3)
    assert sorted(os.listdir(store)) == sorted(others)


# ── room for the whole set ────────────────────────────────────────────────────


def test_a_set_that_does_not_fit_is_refused_before_the_first_byte(
    sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file finds no room: nothing of the first was copied either."""
    reserved: list[int] = []

    def fallocate(handle: int, size: int) -> None:
        reserved.append(size)
        if len(reserved) == 2:
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(disk_space, "fallocate", fallocate)
    monkeypatch.setattr(os, "pwrite", lambda *_: pytest.fail("a byte was written"))
    with pytest.raises(StorageFull, match="quota"):
        publish(sources, store, NAME, created=1.0)
    assert sorted(reserved) == [300, 5000] and os.listdir(store) == []


def test_where_nothing_can_be_reserved_the_free_space_is_compared_first(
    sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_room(monkeypatch, errno.EOPNOTSUPP)
    monkeypatch.setattr(disk_space, "free_bytes", lambda _folder: 5299)
    monkeypatch.setattr(os, "pwrite", lambda *_: pytest.fail("a byte was written"))
    with pytest.raises(StorageFull, match=r"needs 5\.3 kB"):
        publish(sources, store, NAME, created=1.0)
    assert os.listdir(store) == []


def test_room_is_asked_for_by_the_raw_call_which_never_writes_a_file_full(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        disk_space.fallocate(file.fileno(), 1 << 16)
        assert os.fstat(file.fileno()).st_size == 1 << 16
    with (tmp_path / "file").open("rb") as file, pytest.raises(OSError, match="Bad file descriptor"):
        disk_space.fallocate(file.fileno(), 1 << 16)


# ── replaced, or changed at the last moment ───────────────────────────────────


def test_what_changed_right_before_the_name_would_appear_is_not_published(sources: dict[str, Path], store: Path) -> None:
    with pytest.raises(SourceChanged, match="step 100 changed"):
        publish(sources, store, NAME, created=1.0, unchanged=lambda: False)
    assert os.listdir(store) == []
    publish(sources, store, NAME, created=1.0, unchanged=lambda: True)
    verify(store / str(NAME))


def test_a_published_checkpoint_is_replaced_when_that_is_wanted(sources: dict[str, Path], store: Path) -> None:
    publish(sources, store, NAME, created=1.0)
    sources["model.pt"].write_bytes(b"n" * 6000)
    publish(sources, store, NAME, created=2.0, replace=True)
    assert verify(store / str(NAME)).created == 2.0
    assert (store / str(NAME) / "model.pt").read_bytes() == b"n" * 6000
    assert os.listdir(store) == [str(NAME)]


def test_one_that_cannot_be_replaced_stays(sources: dict[str, Path], store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish(sources, store, NAME, created=1.0)
    with monkeypatch.context() as full:
        refuse_room(full)
        with pytest.raises(StorageFull):
            publish(sources, store, NAME, created=2.0, replace=True)
    assert verify(store / str(NAME)).created == 1.0
    assert os.listdir(store) == [str(NAME)]


def test_killed_before_or_after_any_rename_of_a_replacement_the_old_or_the_new_one_is_found(
    sources: dict[str, Path], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.rename
    for nth, after in ((1, False), (1, True), (2, False), (2, True)):
        shutil.rmtree(store, ignore_errors=True)
        publish(sources, store, NAME, created=1.0)
        count = 0

        def dying(old: Path, new: Path, nth: int = nth, after: bool = after) -> None:
            nonlocal count
            count += 1
            if count == nth and not after:
                raise Killed
            real(old, new)
            if count == nth:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", dying)
            with pytest.raises(Killed):
                publish(sources, store, NAME, created=2.0, replace=True)
        found = restore_newest(store, tmp_path / "resume")
        assert found and found.manifest.created == (2.0 if (nth, after) == (2, True) else 1.0)
        remove_partials(store, before_leg=2)
        assert os.listdir(store) == [str(NAME)]


# ── storage that is not mounted ───────────────────────────────────────────────


def test_nothing_is_published_under_an_empty_mount_point(sources: dict[str, Path], tmp_path: Path) -> None:
    """It would be lost when the storage is mounted, and the node's copy may be gone by then."""
    store = tmp_path / "not mounted" / "checkpoints"
    with pytest.raises(StorageError):
        publish(sources, store, NAME, created=1.0)
    assert not store.parent.exists()


def test_storage_that_is_swapped_while_a_checkpoint_is_copied_gets_no_part_of_it(
    sources: dict[str, Path], store: Path, tmp_path: Path
) -> None:
    def swap() -> bool:
        store.rename(tmp_path / "away")
        shutil.copytree(tmp_path / "away", store)
        return True

    with pytest.raises(StorageError, match="other storage is mounted there"):
        publish(sources, store, NAME, created=1.0, unchanged=swap)
    assert not (store / str(NAME)).exists() and not (tmp_path / "away" / str(NAME)).exists()
