"""Reads single pages of Parquet columns.

PyArrow reads a column chunk from its start. To read one page of it, the page (and the dictionary page it
needs) is
made a Parquet file of its own, in memory, with a footer that describes just that: PyArrow then decodes it,
whatever its encoding and compression. The page index guarantees that pages start at a row.
"""

from __future__ import annotations

import bisect
import struct
from collections.abc import Callable, Hashable, Sequence
from functools import cache, partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lakekit.filestore.keys import Positions
from lakekit.skipping.footers import Keep
from lakekit.skipping.parquet_index import DataFileError, Pages, ParquetIndex
from lakekit.skipping.thrift import Field, Reader, ThriftError, encode
from lakekit.skipping.values import Column

_MAGIC = b"PAR1"
_ROOT = encode([(4, "binary", b"schema"), (5, "i32", 1)])

# Fields of ColumnMetaData in parquet.thrift
_TYPE, _ENCODINGS, _PATH, _CODEC, _DATA_OFFSET, _DICTIONARY_OFFSET = 1, 2, 3, 4, 9, 11
# Fields of PageHeader, and values of Encoding
_PAGE_V1, _PAGE_V2 = 5, 8
_DICTIONARY_ENCODINGS = (2, 8)


class GroupReader:
    """Reads rows of one row group, as few pages of each column as the file's page index allows."""

    def __init__(
        self, source: pa.NativeFile, index: ParquetIndex, group: int, path: str, keep: Keep | None = None
    ) -> None:
        """Reads nothing yet; `path` is named in errors, and `keep` keeps what is likely to be read again."""
        self._source = source
        self._index = index
        self._group = group
        self._path = path
        self._keep = keep
        self.rows: int = index.metadata.row_group(group).num_rows

    def read(self, columns: Sequence[Column], start: int, stop: int) -> dict[str, pa.Array]:
        """Returns the rows from `start` up to `stop` (not included) of top-level columns.

        Returns:
            The columns by name, in the types of the file; one that the file does not have is left out.

        Raises:
            DataFileError: if the file is damaged.
        """
        return self._each(
            columns,
            lambda leaf, pages: self._range(leaf, pages, start, stop),
            lambda values: values.slice(start, stop - start),
        )

    def take(self, columns: Sequence[Column], rows: Positions) -> dict[str, pa.Array]:
        """Returns single rows of top-level columns; of a column from those pages alone that hold some of them.

        Args:
            columns: which columns.
            rows: positions in the row group, ascending, at least one.

        Returns:
            See `read`.

        Raises:
            DataFileError: if the file is damaged.
        """
        taken = pa.array(rows)
        return self._each(
            columns, lambda leaf, pages: self._single(leaf, pages, rows), lambda values: values.take(taken)
        )

    def _each(
        self,
        columns: Sequence[Column],
        of_pages: Callable[[int, Pages], pa.Array],
        of_all: Callable[[pa.Array], pa.Array],
    ) -> dict[str, pa.Array]:
        """Returns what `of_pages` makes of columns whose pages are known, and `of_all` of the others."""
        found: dict[str, pa.Array] = {}
        whole: list[str] = []
        try:
            for column in columns:
                leaf = self._index.flat_leaf(column.name)
                pages = None if leaf is None else self._index.pages(self._source, self._group, leaf)
                if leaf is None or pages is None or len(pages) == 1:
                    whole.append(column.name)
                else:
                    found[column.name] = of_pages(leaf, pages)
            if whole:
                found.update({name: of_all(values) for name, values in self._read_whole(whole).items()})
        except (pa.ArrowException, OSError) as error:
            raise DataFileError.of(self._path, str(error).splitlines()[0]) from error
        return found

    def _read_whole(self, names: Sequence[str]) -> dict[str, pa.Array]:
        by_name = {name.lower(): name for name in self._index.metadata.schema.to_arrow_schema().names}
        stored = {name: by_name[name.lower()] for name in names if name.lower() in by_name}
        if not stored:
            return {}

        @cache
        def opened() -> pq.ParquetFile:
            return pq.ParquetFile(
                self._source, metadata=self._index.metadata, coerce_int96_timestamp_unit="us"
            )

        def decode(name: str) -> pa.Array:
            return _one(opened().read_row_group(self._group, columns=[name], use_threads=False).column(name))

        return {name: self._kept(column, partial(decode, column)) for name, column in stored.items()}

    def _range(self, leaf: int, pages: Pages, start: int, stop: int) -> pa.Array:
        first = bisect.bisect_right(pages.first_rows, start) - 1
        spans = [(first, bisect.bisect_left(pages.first_rows, stop))]
        if self._keep is not None:
            spans = _apart(range(*spans[0]), len(pages))
        parts = [self._decoded(leaf, pages, *span) for span in spans]
        values = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
        return values.slice(start - pages.first_rows[spans[0][0]], stop - start)

    def _single(self, leaf: int, pages: Pages, rows: Positions) -> pa.Array:
        needed = np.unique(np.searchsorted(pages.first_rows, rows, side="right") - 1).tolist()
        parts = []
        for first, last in _apart(needed, len(pages)):
            low, high = np.searchsorted(rows, [pages.first_rows[first], pages.first_rows[last]])
            values = self._decoded(leaf, pages, first, last)
            parts.append(values.take(pa.array(rows[low:high] - pages.first_rows[first])))
        return pa.concat_arrays(parts)

    def _decoded(self, leaf: int, pages: Pages, first: int, last: int) -> pa.Array:
        """Returns the values of the pages from `first` up to `last` (not included)."""
        return self._kept((leaf, first, last), partial(self._decode, leaf, pages, first, last))

    def _decode(self, leaf: int, pages: Pages, first: int, last: int) -> pa.Array:
        data = _file_of(self._source, self._index, self._group, leaf, pages, first, last)
        file = pq.ParquetFile(pa.BufferReader(data), coerce_int96_timestamp_unit="us")
        return _one(file.read_row_group(0, use_threads=False).column(0))

    def _kept(self, part: Hashable, read: Callable[[], pa.Array]) -> pa.Array:
        return read() if self._keep is None else self._keep((self._group, part), read)


def _apart(needed: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Returns what to read for some of a column's pages: all of them if it is most, else each on its own.

    Parts are kept as they were read; with longer ones the same pages would be kept in many combinations.
    """
    return [(0, count)] if 2 * len(needed) > count else [(page, page + 1) for page in needed]


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    return pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined


def _file_of(
    source: pa.NativeFile, index: ParquetIndex, group: int, leaf: int, pages: Pages, first: int, last: int
) -> bytes:
    """Returns a Parquet file that holds the pages from `first` up to `last` (not included) of one column."""
    chunk = index.chunk(group, leaf).metadata
    end = pages.offsets[last - 1] + pages.sizes[last - 1]
    data = source.read_at(end - pages.offsets[first], pages.offsets[first])
    start = min(chunk.get(_DICTIONARY_OFFSET) or chunk[_DATA_OFFSET], chunk[_DATA_OFFSET])
    dictionary = b""
    if start < pages.offsets[0] and _uses_dictionary(data, pages, first, last):
        dictionary = source.read_at(pages.offsets[0] - start, start)
    rows = pages.first_rows[last] - pages.first_rows[first]
    size = len(dictionary) + len(data)
    metadata: list[Field] = [
        (1, "i32", chunk[_TYPE]),
        (2, "list<i32>", chunk[_ENCODINGS]),
        (3, "list<binary>", chunk[_PATH]),
        (4, "i32", chunk[_CODEC]),
        (5, "i64", rows),
        (6, "i64", size),
        (7, "i64", size),
        (9, "i64", len(_MAGIC) + len(dictionary)),
    ]
    if dictionary:
        metadata.append((11, "i64", len(_MAGIC)))
    column: list[Field] = [(2, "i64", 0), (3, "struct", metadata)]
    row_group: list[Field] = [(1, "list<struct>", [column]), (2, "i64", size), (3, "i64", rows)]
    footer = encode(
        [
            (1, "i32", 2),
            (2, "list<raw_struct>", [_ROOT, index.leaf_schema(leaf)]),
            (3, "i64", rows),
            (4, "list<struct>", [row_group]),
        ]
    )
    return b"".join([_MAGIC, dictionary, data, footer, struct.pack("<I", len(footer)), _MAGIC])


def _uses_dictionary(data: bytes, pages: Pages, first: int, last: int) -> bool:
    """Tells whether a page needs the dictionary, which writers give up when it has grown large."""
    for page in range(first, last):
        start = pages.offsets[page] - pages.offsets[first]
        try:
            header = Reader(data[start : start + pages.sizes[page]]).read_struct()
        except ThriftError:
            return True
        body = header.get(_PAGE_V1), header.get(_PAGE_V2)
        encoding = body[0].get(2) if body[0] else body[1].get(4) if body[1] else None
        if encoding is None or encoding in _DICTIONARY_ENCODINGS:
            return True
    return False
