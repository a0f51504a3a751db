import uuid
from pathlib import Path

import pytest
from pyroaring import BitMap64

from lakekit.errors import CorruptLogError
from lakekit.storage.actions import DeletionVector
from lakekit.storage.vectors import VectorFileWriter, read_vector, vector_path, z85_decode, z85_encode

BITMAPS = [
    BitMap64([0]),
    BitMap64([3, 4, 7, 11, 18, 29]),
    BitMap64(range(200_000)),
    BitMap64(range(0, 1_000_000, 7)),
    BitMap64([1, 2**33, 2**40 + 5]),
]


def test_several_vectors_in_one_file(store):
    with VectorFileWriter(store) as writer:
        written = [writer.add(bitmap) for bitmap in BITMAPS]
    assert [vector.offset for vector in written][:1] == [1]
    assert {vector.storage_type for vector in written} == {"u"}
    assert len(store.list("")) == 1
    assert [read_vector(store, vector) for vector in written] == BITMAPS
    assert [vector.cardinality for vector in written] == [len(bitmap) for bitmap in BITMAPS]


def test_no_vectors_no_file(store):
    VectorFileWriter(store).close()
    assert store.list("") == []


def test_a_failed_task_writes_nothing(store):
    def task() -> None:
        with VectorFileWriter(store) as writer:
            writer.add(BITMAPS[0])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        task()
    assert store.list("") == []


def test_the_examples_of_the_protocol(disk):
    # The rows and the stored vector are those of Delta's PROTOCOL.md. Its inline text has the form that Delta
    # uses in memory only; this one, of the same rows, is the portable form of Delta's own tests.
    inline = DeletionVector("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", None, 44, 6)
    assert sorted(read_vector(disk, inline)) == [3, 4, 7, 11, 18, 29]
    stored = DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 4, 40, 6)
    assert vector_path(stored) == "ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"


def test_vectors_by_absolute_path(disk, tmp_path):
    with VectorFileWriter(disk) as writer:
        vector = writer.add(BITMAPS[1])
    absolute = f"file:{disk.local_path(vector_path(vector))}"
    moved = DeletionVector("p", absolute, vector.offset, vector.size, vector.cardinality)
    assert read_vector(type(disk)(str(tmp_path / "clone")), moved) == BITMAPS[1]


def test_z85_is_that_of_zeromq():
    assert z85_encode(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    some = uuid.uuid4().bytes
    assert z85_decode(z85_encode(some)) == some
    with pytest.raises(ValueError, match="Z85"):
        z85_decode("~~~~~")


@pytest.fixture
def stored(disk):
    with VectorFileWriter(disk) as writer:
        vector = writer.add(BITMAPS[3])
    return vector, Path(disk.local_path(vector_path(vector)))


def test_a_missing_file_is_named(disk, stored):
    vector, path = stored
    path.unlink()
    with pytest.raises(CorruptLogError, match=path.name):
        read_vector(disk, vector)


@pytest.mark.parametrize("at", [1, 5, 9, 40, -1])
def test_flipped_bits_are_found(disk, stored, at):
    vector, path = stored
    data = bytearray(path.read_bytes())
    data[at] ^= 4
    path.write_bytes(data)
    with pytest.raises(CorruptLogError, match=path.name):
        read_vector(disk, vector)


@pytest.mark.parametrize("length", [0, 1, 3, 20, -1])
def test_cut_files_are_found(disk, stored, length):
    vector, path = stored
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(CorruptLogError, match=path.name):
        read_vector(disk, vector)


def test_a_wrong_count_or_name_in_the_log_is_found(disk, stored):
    vector, _ = stored
    wrong = DeletionVector("u", vector.path_or_inline, vector.offset, vector.size, vector.cardinality + 1)
    with pytest.raises(CorruptLogError, match="rows and not"):
        read_vector(disk, wrong)
    for name in ("~" * 20, "short", "é" * 20):
        with pytest.raises(CorruptLogError, match="storage type"):
            read_vector(disk, DeletionVector("u", name, 1, 1, 1))
    with pytest.raises(CorruptLogError):
        read_vector(disk, DeletionVector("i", "HelloWorld", None, 8, 1))
