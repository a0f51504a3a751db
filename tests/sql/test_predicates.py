"""What conditions say about each table."""

import pytest

from lakekit.skipping.predicate import (
    And,
    Anything,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    StartsWith,
    conjuncts,
)
from lakekit.sql.lexer import tokenize
from lakekit.sql.predicates import Constant, conditions, simple_value
from lakekit.sql.scanner import scan


def shown(predicate, query):
    """The predicate as text, with the constants' own text; '?' for what is not usable."""
    if isinstance(predicate, And | Or):
        word = " AND " if isinstance(predicate, And) else " OR "
        return "(" + word.join(shown(c, query) for c in predicate.children) + ")"
    if isinstance(predicate, Anything):
        return "?"

    def text(value: Constant):
        return query[value.start : value.end]

    if isinstance(predicate, Comparison):
        return f"{predicate.column}{predicate.op}{text(predicate.value)}"
    if isinstance(predicate, In):
        return f"{predicate.column} in {','.join(map(text, predicate.values))}"
    if isinstance(predicate, StartsWith):
        return f"{predicate.column}~{predicate.prefix}"
    return f"{predicate.column} {'null' if isinstance(predicate, IsNull) else 'not null'}"


def usable(query, table="t"):
    """The usable parts of what is wanted of a table."""
    scanned = scan(tokenize(query))
    found = conditions(scanned, query)
    reference = next(r for r in scanned.references if r.name.parts[-1] == table)
    wanted = found.get(reference.name.start)
    parts = conjuncts(wanted) if wanted is not None else []
    return " & ".join(text for part in parts if (text := shown(part, query)) != "?")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 5", "id=5"),
        ("5 = id AND 3 < x AND y >= 2", "id=5 & x>3 & y>=2"),
        ("id IN (1, :p, 'x')", "id in 1,:p,'x'"),
        ("id BETWEEN 1 AND 2 AND z = 3", "id>=1 & id<=2 & z=3"),
        ("id = 5 OR x = 2", "(id=5 OR x=2)"),
        ("(id = 5 AND x = 1) OR (id = 6)", "((id=5 AND x=1) OR id=6)"),
        ("((id = 5))", "id=5"),
        ("id <=> 5", "id=5"),
        ("id IS NULL AND x IS NOT NULL", "id null & x not null"),
        ("s LIKE 'ab%c' AND u LIKE '%x' AND v LIKE 'a\\_b%'", "s~ab & u not null"),
        ("id = CAST('5' AS BIGINT)", "id=CAST('5' AS BIGINT)"),
        ("d = DATE '2020-01-01' + INTERVAL 1 DAY", "d=DATE '2020-01-01' + INTERVAL 1 DAY"),
        ("t.id = 1 AND db.t.x = 2 AND t.s.f = 3", "id=1 & x=2 & s.f=3"),
        ("id = -5", "id=-5"),
    ],
)
def test_shapes(where, expected):
    assert usable(f"SELECT * FROM db.t WHERE {where}") == expected


@pytest.mark.parametrize(
    "where",
    [
        "NOT id = 5",
        "id = 5 + x",
        "id + 1 = 5",
        "f(id) = 5",
        "id = f(5)",
        "id = rand()",
        "id = current_date()",
        "id = (SELECT 5)",
        "id NOT IN (5)",
        "id <> 5",
        "id = 5 IS NOT NULL",
        "id = 5 COLLATE UTF8_LCASE",
        "id = 5::int",
        "id COLLATE UTF8_LCASE = 'a'",
        "id = 'a' 'b'",
        "id IN (SELECT 5)",
        "id IN (5, x)",
        "CASE WHEN id = 5 THEN true END",
        "id = 5 = true",
        "s LIKE 'a%' ESCAPE '/'",
        "id = 5 & 1",
    ],
)
def test_everything_else_wants_all_rows(where):
    assert usable(f"SELECT * FROM t WHERE {where} AND z = 1") == "z=1"


def test_or_with_something_unknown_wants_all_rows():
    assert usable("SELECT * FROM t WHERE id = 5 OR f(id)") == "(id=5 OR ?)"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM t a JOIN u b ON a.id = 5 WHERE a.x = 1", "id=5 & x=1"),
        ("SELECT * FROM u JOIN t ON t.id = 5", "id=5"),
        ("SELECT * FROM u LEFT JOIN t ON t.id = 5", "id=5"),
        ("SELECT * FROM t LEFT JOIN u ON t.id = 5", ""),
        ("SELECT * FROM u RIGHT JOIN t ON t.id = 5", ""),
        ("SELECT * FROM u FULL JOIN t ON t.id = 5", ""),
        ("SELECT * FROM u LEFT ANTI JOIN t ON t.id = 5", "id=5"),
        ("SELECT * FROM t LEFT ANTI JOIN u ON t.id = 5", ""),
        ("SELECT * FROM u LEFT JOIN t ON t.id = u.id WHERE t.id = 5 AND t.x IS NULL", "id=5"),
        ("SELECT * FROM u LEFT JOIN t ON t.id = u.id WHERE t.x <=> NULL", ""),
        ("SELECT * FROM t JOIN u USING (id) WHERE id = 5", ""),
        ("SELECT * FROM t, LATERAL explode(xs) e WHERE id = 5", ""),
        ("SELECT * FROM t LATERAL VIEW explode(xs) e AS id WHERE id = 5", ""),
        ("SELECT * FROM t AS a (k, v) WHERE a.id = 5", ""),
        ("SELECT * FROM t TABLESAMPLE (1 ROWS) WHERE id = 5", ""),
        ("SELECT * FROM t PIVOT (sum(x) FOR id IN (5)) WHERE id = 5", ""),
        ("FROM t |> EXTEND 1 AS id |> WHERE id = 5", ""),
        ("SELECT * FROM u WHERE EXISTS (SELECT 1 FROM t WHERE id = 5 AND t.x = u.x) AND u.id = 6", "id=5"),
        ("SELECT id = 5 FROM t", ""),
        ("SELECT id FROM t GROUP BY id HAVING id = 5", ""),
        ("SELECT * FROM t WHERE id = 5 UNION SELECT * FROM u WHERE id = 6", "id=5"),
        ("SELECT * FROM (t JOIN u ON t.id = 5) WHERE t.x = 1", "id=5"),
    ],
)
def test_only_what_surely_holds(query, expected):
    assert usable(query) == expected


def test_reasons_are_told():
    query = "SELECT * FROM t a JOIN u b ON a.id = b.id WHERE a.x = 1 AND b.y = 2"
    scanned = scan(tokenize(query))
    wanted = conditions(scanned, query)[scanned.references[0].name.start]
    reasons = [p.reason for p in conjuncts(wanted) if isinstance(p, Anything)]
    assert reasons == ["not a comparison of a column with constants", "not about this table"]


@pytest.mark.parametrize(
    ("text", "value"),
    [("5", 5), ("-5", -5), ("'a'", "a"), ("1.50", "1.50"), ("5L", None), ("1e3", None), ("'a\\n'", None)],
)  # fmt: skip
def test_simple_values(text, value):
    found = simple_value(text)
    assert (str(found) if found is not None and not isinstance(found, int) else found) == value
    assert IsNotNull("a") != IsNull("a")
