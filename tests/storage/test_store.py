import os
import pickle
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakekit.storage.store import FileInfo, Store


def paths(files: list[FileInfo]) -> list[str]:
    return [file.path for file in files]


def test_put_read_and_overwrite(store):
    store.put("a/b.bin", b"one")
    store.put("a/b.bin", b"two!")
    assert store.read("a/b.bin") == b"two!"
    assert store.read_range("a/b.bin", 1, 2) == b"wo"
    info = store.info("a/b.bin")
    assert (info.path, info.size) == ("a/b.bin", 4)


def test_missing_files(store):
    for read in (store.read, lambda path: store.open_input(path).read()):
        with pytest.raises(FileNotFoundError):
            read("nothing")
    assert not store.exists("nothing")
    assert store.info("nothing") is None
    assert store.list("nowhere") == []
    assert store.list_folders("nowhere") == []


def test_put_if_absent_keeps_the_first(store):
    assert store.put_if_absent("log/1.json", b"mine")
    assert not store.put_if_absent("log/1.json", b"yours")
    assert store.read("log/1.json") == b"mine"
    assert paths(store.list("")) == ["log/1.json"]


def test_put_if_absent_has_one_winner(store):
    store.put("x", b"")  # opens the store once
    won: list[bytes] = []

    def write(data: bytes) -> None:
        if store.put_if_absent("log/1.json", data):
            won.append(data)

    threads = [threading.Thread(target=write, args=(b"%d" % k * 5000,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert won == [store.read("log/1.json")]


def test_list_is_recursive_sorted_and_starts_after(store):
    for name in ("log/2", "log/1", "log/sub/3", "logs/4", "_bucket=1/p 1%é.parquet"):
        store.put(name, b"x")
    assert paths(store.list("log")) == ["log/1", "log/2", "log/sub/3"]
    assert paths(store.list("log", start_after="log/1")) == ["log/2", "log/sub/3"]
    assert paths(store.list("")) == ["_bucket=1/p 1%é.parquet", "log/1", "log/2", "log/sub/3", "logs/4"]
    assert store.list_folders() == ["_bucket=1", "log", "logs"]
    assert store.list_folders("log") == ["sub"]
    assert store.read("_bucket=1/p 1%é.parquet") == b"x"


def test_delete_ignores_missing_files(store):
    for name in "abc":
        store.put(name, b"x")
    store.delete(["a", "nothing", "b"])
    assert paths(store.list("")) == ["c"]


def test_parquet_through_arrow_files(store):
    table = pa.table({"id": range(5000)})
    with store.open_output("_bucket=0/part.parquet") as file:
        pq.write_table(table, file, row_group_size=1000)
    with store.open_input("_bucket=0/part.parquet") as file:
        groups = pq.ParquetFile(file)
        assert groups.read_row_group(3)["id"].to_pylist() == list(range(3000, 4000))


@pytest.mark.parametrize("path", ["/etc/passwd", "../other/file", "a/../../b"])
def test_paths_stay_inside_the_root(store, path):
    with pytest.raises(ValueError, match="not inside"):
        store.put(path, b"x")
    with pytest.raises(ValueError, match="not inside"):
        store.delete([path])


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_local_roots_are_paths_or_uris(tmp_path, prefix):
    folder = tmp_path / "a b"
    root = f"{prefix}{str(folder).replace(' ', '%20')}" if prefix else str(folder)
    store = Store(root)
    assert store.is_local
    assert store.root == str(folder)
    assert store.local_path("x/y") == str(folder / "x" / "y")


def test_roots_of_object_stores():
    store = Store("s3a://bucket/warehouse/t/")
    assert (store.root, store.is_local) == ("s3://bucket/warehouse/t", False)
    with pytest.raises(TypeError, match="not on a local disk"):
        store.local_path("x")


def test_pickles_and_tells_no_secrets(disk):
    disk.put("a", b"x")
    assert pickle.loads(pickle.dumps(disk)).read("a") == b"x"
    assert "hidden" not in repr(Store("s3://bucket/t", {"aws_secret_access_key": "hidden"}))


def test_absolute_uris_can_be_read_but_not_written(disk, tmp_path):
    (tmp_path / "other t").mkdir()
    (tmp_path / "other t" / "f.bin").write_bytes(b"there")
    uri = f"file:{tmp_path}/other%20t/f.bin"
    assert disk.read(uri) == b"there"
    assert disk.read_range(uri, 1, 2) == b"he"
    assert disk.open_input(uri).read() == b"there"
    with pytest.raises(FileNotFoundError):
        disk.read(uri.replace("f.bin", "gone.bin"))
    disk.delete([uri])
    assert (tmp_path / "other t" / "f.bin").exists()


def test_info_tells_a_replaced_file_from_the_old_one(disk):
    disk.put("a", b"one")
    before = disk.info("a")
    os.utime(disk.local_path("a"), ns=(before.modified_ms * 1_000_000,) * 2)
    before = disk.info("a")
    disk.put("a", b"two")
    os.utime(disk.local_path("a"), ns=(before.modified_ms * 1_000_000,) * 2)
    assert disk.info("a") != before


def test_without_hard_links_a_file_is_still_created_once(disk, monkeypatch):
    def no_link(source: str, target: str) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    assert disk.put_if_absent("log/1.json", b"mine")
    assert not disk.put_if_absent("log/1.json", b"yours")
    assert disk.read("log/1.json") == b"mine"
    assert paths(disk.list("")) == ["log/1.json"]


def test_a_failed_write_leaves_nothing(disk, monkeypatch):
    def full(source: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="No space"):
        disk.put_if_absent("log/1.json", b"mine")
    assert disk.list("") == []


@pytest.mark.parametrize("change", ["put", "put_if_absent", "delete"])
def test_hadoops_checksum_of_an_old_file_goes(disk, change):
    disk.put("log/1", b"old")
    checksum = Path(disk.local_path("log/.1.crc"))
    checksum.write_bytes(b"crc")
    if change == "delete":
        disk.delete(["log/1"])
    else:
        if change == "put_if_absent":
            Path(disk.local_path("log/1")).unlink()
        getattr(disk, change)("log/1", b"new")
    assert not checksum.exists()
