"""Lines on the wire: the same bytes come out, few travel, and nothing that is sent can do harm."""

from __future__ import annotations

import json
import random
import struct
import zlib

import pytest

from onward.rundir.packed_lines import LONGEST, SkeletonMemory, UnknownSkeleton, pack_lines, unpack_lines

NAMES = [f"layers/{n:05d}/grad_norm" for n in range(5000)]


def wide(n: int, luck: random.Random) -> bytes:
    record = {"n": n, "t": 1.7e9 + n, "s": n, "m": {name: luck.gauss(0, 1) for name in NAMES}}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def line(luck: random.Random) -> bytes:
    values = (1, -7, 0.5, 1e-300, -1.5e22, True, None, "NaN", 'a": 12, "b":3', "é\\", [1, {"x": 2}], {"y": -0.0}, "")
    record = {luck.choice(("n", "s", "m", "loss", 'odd":7', "ü")): luck.choice(values) for _ in range(luck.randrange(6))}
    text = json.dumps(record, separators=luck.choice(((",", ":"), (", ", ": "))), ensure_ascii=luck.random() < 0.5)
    return luck.choice((text, text[: luck.randrange(len(text) + 1)])).encode() + b"\n"


def test_what_is_unpacked_is_what_was_packed_byte_by_byte() -> None:
    memory, known, packed_some = SkeletonMemory(), set[str](), 0
    for seed in range(400):
        luck = random.Random(seed)
        kinds = [line(luck) for _ in range(luck.randrange(1, 4))]
        data = b"".join(luck.choice(kinds) for _ in range(luck.randrange(1, 200)))
        packed = pack_lines(data, known)
        if packed:
            packed_some += 1
            assert unpack_lines(packed.body, memory) == data
            known |= packed.digests
    assert packed_some > 200


def test_random_values_of_wide_records_take_less_than_ten_bytes_each() -> None:
    luck, memory, known = random.Random(1), SkeletonMemory(), set[str]()
    sizes = []
    for n in range(3):
        data = wide(n, luck)
        packed = pack_lines(data, known)
        assert packed
        assert unpack_lines(packed.body, memory) == data
        known |= packed.digests
        sizes.append(len(packed.body) / len(NAMES))
    assert sizes[1:] == pytest.approx([8.6, 8.6], abs=0.3)
    assert sizes[0] < 15  # once with the names


def test_a_server_that_forgot_says_so_and_takes_it_with_all_skeletons() -> None:
    data = wide(0, random.Random(1))
    first = pack_lines(data)
    assert first
    assert first.complete
    again = pack_lines(data, first.digests)
    assert again
    assert not again.complete
    memory = SkeletonMemory()
    with pytest.raises(UnknownSkeleton):
        unpack_lines(again.body, memory)
    unpack_lines(first.body, memory)
    assert unpack_lines(again.body, memory) == data


def test_memory_of_skeletons_is_bounded_and_keeps_the_newest() -> None:
    memory = SkeletonMemory(most=1000)
    made = [pack_lines(b"".join(b'{"%s%d":%d}\n' % (b"x" * 300, k, n) for n in range(50))) for k in range(9)]
    for packed in made:
        assert packed
        unpack_lines(packed.body, memory)
    known = [digest for packed in made if packed for digest in packed.digests]
    with pytest.raises(UnknownSkeleton):
        memory.recall(known[0])
    assert memory.recall(known[-1])


@pytest.mark.parametrize("data", [b"", b"torn", b"one\0two\n", b"short\n"])
def test_what_is_not_worth_it_is_not_packed(data: bytes) -> None:
    assert pack_lines(data) is None


def test_lines_without_anything_in_common_are_not_packed() -> None:
    assert pack_lines(b"".join(b'{"%d x":%d}\n' % (n, n) for n in range(1000))) is None


def packed_by_hand(head: bytes, numbers: bytes, given: bytes) -> bytes:
    streams = [zlib.compress(part) for part in (head, numbers, given)]
    return struct.pack("<III", *map(len, streams)) + b"".join(streams)


BAD = {
    "nothing": b"",
    "noise": random.Random(1).randbytes(300),
    "no JSON": packed_by_hand(b"{", b"", b""),
    "no object": packed_by_hand(b"[]", b"", b""),
    "no lines": packed_by_hand(b'{"skeletons": []}', b"", b""),
    "a line that is none": packed_by_hand(b'{"skeletons": [], "lines": [0]}', b"", b""),
    "a line before the first": packed_by_hand(b'{"skeletons": [], "lines": [-1]}', b"", b""),
    "lines of another kind": packed_by_hand(b'{"skeletons": [], "lines": ["x"]}', b"", b""),
    "numbers for nothing": packed_by_hand(b'{"skeletons": [], "lines": []}', b"1", b""),
    "too long a stream": packed_by_hand(b'{"skeletons": [], "lines": []}', bytes(LONGEST + 1), b""),
}


@pytest.mark.parametrize("name", BAD)
def test_a_body_that_is_no_packed_lines_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"not packed lines|unpacked|numbers"):
        unpack_lines(BAD[name], SkeletonMemory())


def test_a_small_body_cannot_become_a_large_piece() -> None:
    skeleton = b"x" * (1 << 20)
    packed = pack_lines(skeleton + b"\n" + skeleton + b"\n")
    assert packed
    (digest,) = packed.digests
    memory = SkeletonMemory()
    memory.remember([skeleton])
    bomb = packed_by_hand(json.dumps({"skeletons": [digest], "lines": [0] * 10_000}).encode(), b"", b"")
    with pytest.raises(ValueError, match="at most 16 MiB"):
        unpack_lines(bomb, memory)


def test_too_few_numbers_are_refused() -> None:
    data = b'{"a":1}\n' * 50
    packed = pack_lines(data)
    assert packed
    (digest,) = packed.digests
    memory = SkeletonMemory()
    unpack_lines(packed.body, memory)
    with pytest.raises(ValueError, match="assign sequence"):
        unpack_lines(packed_by_hand(json.dumps({"skeletons": [digest], "lines": [0, 0]}).encode(), b"1", b""), memory)
