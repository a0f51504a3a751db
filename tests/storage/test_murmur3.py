from datetime import date, datetime, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from lakekit.storage.murmur3 import bucket_of, spark_hash

NAN_OF_ANOTHER_KIND = np.frombuffer(b"\x01\x00\x00\x00\x00\x00\xf8\xff", dtype=np.float64)[0]


def micros(year, second, micro):
    return datetime(year, 1, 1, 0, 0, second, micro, tzinfo=timezone.utc)


# What Spark 4.0 says to SELECT hash(…).
SPARK = [
    (pa.bool_(), [(True, -559580957), (False, 933211791)]),
    (pa.int8(), [(-128, 1110053733)]),
    (pa.int16(), [(-1, -1604776387)]),
    (pa.int32(), [(0, 933211791), (-1, -1604776387), (2**31 - 1, 133916647)]),
    (pa.int64(), [(5, 1607884268), (-1, -939490007), (2**63 - 1, -1604625029), (-(2**63), -853646085)]),
    (
        pa.float32(),
        [(0.0, 933211791), (-0.0, 933211791), (float("nan"), -349261430), (-1.5, 1765572753)],
    ),
    (pa.float32(), [(float("inf"), 2026854605)]),
    (
        pa.float64(),
        [
            (-0.0, -1670924195),
            (0.0, -1670924195),
            (float("nan"), -1281358385),
            (NAN_OF_ANOTHER_KIND, -1281358385),
            (1e-320, 1159027107),
        ],
    ),
    (
        pa.string(),
        [
            ("", 142593372),
            ("a", 1485273170),
            ("abc", 1322437556),
            ("abcd", -396302900),
            ("abcde", 814637928),
            ("héllo wörld", -281075962),
            ("日本語😀", 491861466),
            ("x" * 41, 1749746479),
        ],
    ),
    (pa.binary(), [(b"", 142593372), (b"\xff", 1398487324), (b"\x80\xff\x00\x7f\x01", 379776968)]),
    (
        pa.date32(),
        [(date(1970, 1, 1), 933211791), (date(1, 1, 1), -1147107224), (date(9999, 12, 31), 1135886659)],
    ),
    (pa.timestamp("us", "UTC"), [(micros(2020, 0, 123456), -243884851)]),
    (pa.timestamp("us"), [(micros(1960, 0, 1).replace(tzinfo=None), 1810400845)]),
    (pa.decimal128(9, 2), [(Decimal(0), -1670924195), (Decimal("-1.50"), -1998913259)]),
    (pa.decimal128(18, 4), [(Decimal("12345678901234.5678"), 367821349)]),
    (
        pa.decimal128(38, 10),
        [
            (Decimal(0), -783713497),
            (Decimal("1.5"), -994477761),
            (Decimal("-0.0000000001"), 1398487324),
            (Decimal("0.0000000128"), -544401882),
            (Decimal("-0.0000000128"), 775851899),
            (Decimal("-1234567890123456789012345678.0123456789"), 972119496),
        ],
    ),
]


@pytest.mark.parametrize(
    ("kind", "cases"), SPARK, ids=lambda value: str(value) if isinstance(value, pa.DataType) else ""
)
def test_hashes_of_single_values(kind, cases):
    values = pa.array([value for value, _ in cases], kind)
    assert spark_hash([values]).tolist() == [wanted for _, wanted in cases]
    one_by_one = [spark_hash([values[at : at + 1]]).tolist()[0] for at in range(len(values))]
    assert one_by_one == [wanted for _, wanted in cases]


@pytest.mark.parametrize("kind", [kind for kind, _ in SPARK] + [pa.null()], ids=str)
def test_nulls_keep_the_seed(kind):
    assert spark_hash([pa.array([None, None], kind)]).tolist() == [42, 42]
    assert spark_hash([pa.array([], kind)]).tolist() == []


def test_several_columns():
    ids, names = pa.array([1, 1, None, None], pa.int64()), pa.array(["a", None, "a", None])
    assert spark_hash([ids, names]).tolist() == [573093329, -1712319331, 1485273170, 42]
    assert spark_hash([names, ids]).tolist()[0] == 1838122449


def test_buckets_are_never_negative():
    assert bucket_of([pa.array([1]), pa.array(["a"])], 4).tolist() == [1]
    buckets = bucket_of([pa.array(range(1000))], 7)
    assert buckets.dtype == np.int32
    assert set(buckets.tolist()) == set(range(7))


@pytest.mark.parametrize(
    "kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())], ids=str
)
def test_other_layouts_of_texts(kind):
    texts = pa.array(["abcde", "", None, "日本語😀", "x" * 41])
    other = (
        pa.array(texts.to_pylist(), kind) if not pa.types.is_dictionary(kind) else texts.dictionary_encode()
    )
    assert (
        spark_hash([other]).tolist()
        == spark_hash([texts]).tolist()
        == [814637928, 142593372, 42, 491861466, 1749746479]
    )


def test_chunks_and_slices():
    texts = [str(n) * (n % 5) if n % 11 else None for n in range(300)]
    whole = spark_hash([pa.array(texts)]).tolist()
    assert spark_hash([pa.chunked_array([texts[:7], [], texts[7:]], pa.string())]).tolist() == whole
    assert spark_hash([pa.array(texts)[13:200]]).tolist() == whole[13:200]
    bits = pa.array([n % 3 == 0 for n in range(40)])
    assert spark_hash([bits[9:]]).tolist() == spark_hash([bits]).tolist()[9:]
    decimals = pa.array([Decimal(n - 500) * 10**n for n in range(30)], pa.decimal128(38, 0))
    assert spark_hash([decimals[9:]]).tolist() == spark_hash([decimals]).tolist()[9:]


@pytest.mark.parametrize(
    "values", [pa.array([[1]]), pa.array([{"a": 1}]), pa.array([1], pa.uint64())], ids=str
)
def test_types_that_are_no_keys(values):
    with pytest.raises(TypeError, match="not implemented for Arrow type"):
        spark_hash([values])
