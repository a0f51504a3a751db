"""One folder of files, on a local disk or in an object store.

Local files go through the operating system: it alone offers a create that is atomic in content as well as
in name. Object stores go through `obstore`. Paths are plain text (not URL-encoded), relative to the root,
with `/`; for reading they may also be absolute URIs.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import threading
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_CLIENT_OPTIONS = frozenset(
    {"allow_http", "allow_invalid_certificates", "connect_timeout", "proxy_url", "timeout"}
)
_DELETE_BATCH = 1000


@dataclass(frozen=True, slots=True)
class FileInfo:
    """One file: its path relative to the root, size in bytes, modification time in ms since 1970 UTC.

    `tag` differs between files of one path: the ETag of an object, inode and exact time of a local file.
    """

    path: str
    size: int
    modified_ms: int
    tag: str = ""


FileInfos = list[FileInfo]
Names = list[str]


def local_root(root: str) -> str | None:
    """Returns the absolute OS path of a root that is a path or a ``file:`` URI, and None for other URIs."""
    if root.startswith("file:"):  # Spark writes one slash, others three
        return os.path.abspath(urllib.parse.unquote(urllib.parse.urlsplit(root).path))
    if "://" in root:
        return None
    return os.path.abspath(root)


class Store:
    """A root folder and the files under it; cheap to make, picklable, safe to use from many threads.

    Args:
        root: a local path, a ``file:`` URI, or the URI of an object store (s3, s3a, gs, abfss, az).
        options: configuration of the object store, as `obstore` names it (for example ``aws_region``).
    """

    def __init__(self, root: str, options: Mapping[str, str] | None = None) -> None:
        local = local_root(root)
        self.is_local: bool = local is not None
        self.root: str = local if local is not None else _object_root(root)
        self._options = dict(options or {})
        self._files: _LocalFiles | _ObjectFiles | None = _LocalFiles(local) if local is not None else None
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"Store({self.root!r})"

    def __reduce__(self) -> tuple[type[Store], tuple[str, dict[str, str]]]:
        return type(self), (self.root, self._options)

    def _backend(self) -> _LocalFiles | _ObjectFiles:
        if self._files is None:
            with self._lock:
                if self._files is None:
                    self._files = _ObjectFiles(self.root, self._options)
        return self._files

    def _source(self, path: str) -> tuple[_LocalFiles | _ObjectFiles, str]:
        # A shallow clone names the files of another table by absolute URIs.
        if _ABSOLUTE.match(path):
            folder, _, name = path.rpartition("/")
            return Store(folder, self._options)._backend(), urllib.parse.unquote(name)
        return self._backend(), _checked(path)

    def local_path(self, path: str) -> str:
        """Returns the absolute OS path of a file.

        Raises:
            TypeError: if the root is not on a local disk.
        """
        backend = self._backend()
        if not isinstance(backend, _LocalFiles):
            raise TypeError(f"{self.root} is not on a local disk")
        return backend.full(_checked(path))

    def read(self, path: str) -> bytes:
        """Returns the whole content.

        Raises:
            FileNotFoundError: if there is no such file.
        """
        backend, name = self._source(path)
        return backend.read(name)

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Returns up to `length` bytes from `offset`.

        Raises:
            FileNotFoundError: if there is no such file.
        """
        backend, name = self._source(path)
        return backend.read_range(name, offset, length)

    def put(self, path: str, data: bytes) -> None:
        """Writes the file, replacing what was there; readers see the old or the new content, never a mix."""
        self._backend().put(_checked(path), data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Writes the file unless it exists, atomically; returns False if it exists."""
        return self._backend().put_if_absent(_checked(path), data)

    def info(self, path: str) -> FileInfo | None:
        """Returns size and modification time, or None if there is no such file."""
        return self._backend().info(_checked(path))

    def exists(self, path: str) -> bool:
        """Tells whether the file exists."""
        return self.info(path) is not None

    def list(self, prefix: str, start_after: str | None = None) -> FileInfos:
        """Returns all files under the folder `prefix`, at any depth, sorted by path.

        Args:
            prefix: a folder relative to the root; the empty text is the root itself.
            start_after: return only files whose path sorts after this one.
        """
        return self._backend().list(_checked(prefix), start_after)

    def list_folders(self, prefix: str = "") -> Names:
        """Returns the names (not paths) of the folders directly in the folder `prefix`, sorted."""
        return self._backend().list_folders(_checked(prefix))

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files; those that are missing already are no error."""
        self._backend().delete([_checked(path) for path in paths])

    def open_input(self, path: str) -> pa.NativeFile:
        """Opens a file for random access; a local one is mapped into memory.

        Raises:
            FileNotFoundError: if there is no such file.
        """
        backend, name = self._source(path)
        return backend.open_input(name)

    def open_output(self, path: str) -> pa.NativeFile:
        """Opens a new file for writing, and makes its folders."""
        return self._backend().open_output(_checked(path))


def _object_root(root: str) -> str:
    scheme, _, rest = root.partition("://")
    scheme = "s3" if scheme in {"s3a", "s3n"} else scheme
    return f"{scheme}://{rest.rstrip('/')}"


def _checked(path: str) -> str:
    # A path comes from a log that anybody may have written: it must not lead out of the root.
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError(f"path {path!r} is not inside the table")
    return path


class _LocalFiles:
    """A folder of the local file system."""

    def __init__(self, root: str) -> None:
        self._root = root

    def full(self, path: str) -> str:
        return os.path.join(self._root, path) if path else self._root

    def read(self, path: str) -> bytes:
        with open(self.full(path), "rb") as file:
            return file.read()

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with open(self.full(path), "rb") as file:
            file.seek(offset)
            return file.read(length)

    def put(self, path: str, data: bytes) -> None:
        temporary = self._write_temporary(path, data)
        self._drop_checksum(path)
        os.replace(temporary, self.full(path))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        target = self.full(path)
        if os.path.exists(target):
            return False
        temporary = self._write_temporary(path, data)
        self._drop_checksum(path)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            return _create_exclusively(target, data)
        finally:
            os.unlink(temporary)
        return True

    def _drop_checksum(self, path: str) -> None:
        # Hadoop keeps a checksum beside each local file it writes, and refuses a file that does not fit it.
        folder, name = os.path.split(self.full(path))
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(os.path.join(folder, f".{name}.crc"))

    def _write_temporary(self, path: str, data: bytes) -> str:
        folder, name = os.path.split(self.full(path))
        os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}.tmp")
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            # Without it a power cut may keep the name of a commit and lose its content.
            os.fsync(file.fileno())
        return temporary

    def info(self, path: str) -> FileInfo | None:
        try:
            status = os.stat(self.full(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return _local_info(path, status)

    def list(self, prefix: str, start_after: str | None) -> FileInfos:
        found: FileInfos = []
        self._walk(prefix.rstrip("/"), found)
        if start_after is not None:
            found = [file for file in found if file.path > start_after]
        return sorted(found, key=lambda file: file.path)

    def _walk(self, folder: str, found: FileInfos) -> None:
        try:
            entries = os.scandir(self.full(folder))
        except (FileNotFoundError, NotADirectoryError):
            return
        with entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                # A file may vanish between being listed and being looked at.
                with contextlib.suppress(FileNotFoundError):
                    if entry.is_dir():
                        self._walk(path, found)
                    else:
                        found.append(_local_info(path, entry.stat()))

    def list_folders(self, prefix: str) -> Names:
        try:
            with os.scandir(self.full(prefix)) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def delete(self, paths: Iterable[str]) -> None:
        for path in paths:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(self.full(path))
            self._drop_checksum(path)

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.memory_map(self.full(path), "rb")

    def open_output(self, path: str) -> pa.NativeFile:
        full = self.full(path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        return pa.OSFile(full, "wb")


def _local_info(path: str, status: os.stat_result) -> FileInfo:
    exact = status.st_mtime_ns
    return FileInfo(path, status.st_size, exact // 1_000_000, f"{status.st_ino}-{exact}")


def _create_exclusively(target: str, data: bytes) -> bool:
    # For file systems without hard links (some network and container mounts): a reader may see part of it.
    try:
        descriptor = os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except BaseException:
        os.unlink(target)
        raise
    return True


def _client_option(key: str) -> str | None:
    # delta-rs and others write options of the HTTP client among those of the store, with its prefix.
    name = re.sub("^(aws|azure|google)_", "", key.lower())
    return name if name in _CLIENT_OPTIONS else None


class _ObjectFiles:
    """A prefix of an object store."""

    def __init__(self, root: str, options: Mapping[str, str]) -> None:
        import obstore
        from obstore.store import from_url

        self._obstore: Any = obstore
        self._missing = (FileNotFoundError, obstore.exceptions.NotFoundError)
        config: Any = {key: value for key, value in options.items() if _client_option(key) is None}
        client: Any = {name: value for key, value in options.items() if (name := _client_option(key))}
        self._store: ObjectStore = from_url(root, config=config, client_options=client)

    def read(self, path: str) -> bytes:
        with self._missing_as_file_not_found(path):
            return bytes(self._obstore.get(self._store, path).bytes())

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        with self._missing_as_file_not_found(path):
            return bytes(self._obstore.get_range(self._store, path, start=offset, length=length))

    @contextlib.contextmanager
    def _missing_as_file_not_found(self, path: str) -> Any:
        try:
            yield
        except self._missing as error:
            raise FileNotFoundError(path) from error

    def put(self, path: str, data: bytes) -> None:
        self._obstore.put(self._store, path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        try:
            # A multipart upload cannot be conditional.
            self._obstore.put(self._store, path, data, mode="create", use_multipart=False)
        except (self._obstore.exceptions.AlreadyExistsError, self._obstore.exceptions.PreconditionError):
            return False
        return True

    def info(self, path: str) -> FileInfo | None:
        try:
            return _file_info(self._obstore.head(self._store, path))
        except self._missing:
            return None

    def list(self, prefix: str, start_after: str | None) -> FileInfos:
        chunks = self._obstore.list(self._store, prefix or None, offset=start_after)
        return sorted((_file_info(meta) for chunk in chunks for meta in chunk), key=lambda file: file.path)

    def list_folders(self, prefix: str) -> Names:
        found = self._obstore.list_with_delimiter(self._store, prefix or None)
        return sorted(folder.rstrip("/").rpartition("/")[2] for folder in found["common_prefixes"])

    def delete(self, paths: Iterable[str]) -> None:
        names = list(paths)
        for start in range(0, len(names), _DELETE_BATCH):
            batch = names[start : start + _DELETE_BATCH]
            try:
                self._obstore.delete(self._store, batch)
            except self._missing:
                # Some stores stop at a file that is missing already.
                for name in batch:
                    with contextlib.suppress(*self._missing):
                        self._obstore.delete(self._store, name)

    def open_input(self, path: str) -> pa.NativeFile:
        with self._missing_as_file_not_found(path):
            return pa.PythonFile(_Reader(self._obstore.open_reader(self._store, path)), mode="r")

    def open_output(self, path: str) -> pa.NativeFile:
        return pa.PythonFile(_Writer(self._obstore.open_writer(self._store, path)), mode="w")


def _file_info(meta: Mapping[str, Any]) -> FileInfo:
    modified_ms = int(meta["last_modified"].timestamp() * 1000)
    return FileInfo(meta["path"], meta["size"], modified_ms, meta["e_tag"] or "")


class _Reader:
    """obstore's reader with what PyArrow expects of a Python file: real `bytes`, and `closed`."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        return bytes(self._reader.read(size) if size >= 0 else self._reader.read())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._reader.close()
        self.closed = True


class _Writer:
    """obstore's writer with what PyArrow expects of a Python file."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self.closed = False

    def write(self, data: Any) -> int:
        # PyArrow lends its buffer for the time of the call only.
        return int(self._writer.write(bytes(data)))

    def flush(self) -> None:
        pass  # parts are uploaded as they fill

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._writer.close()
