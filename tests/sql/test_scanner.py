"""Which tables a query reads."""

import pytest

from lakekit.sql.lexer import tokenize
from lakekit.sql.scanner import scan

CASES = [
    ("SELECT * FROM a", "a"),
    ("SELECT * FROM a.b AS c, d e JOIN f USING (id)", "a.b d f"),
    ("WITH x AS (SELECT * FROM a), y (k) AS (SELECT * FROM x) SELECT * FROM x JOIN y JOIN b", "a b"),
    ("WITH a AS (SELECT * FROM a) SELECT * FROM a", "a"),
    ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) q, a", "a"),
    ("SELECT (SELECT max(x) FROM a) FROM b WHERE EXISTS (SELECT 1 FROM c) AND x IN (SELECT y FROM d)", "a b c d"),
    ("SELECT extract(YEAR FROM dt), trim(BOTH 'x' FROM s), substring(s FROM 2) FROM a", "a"),
    ("SELECT a IS NOT DISTINCT FROM b, x IS DISTINCT FROM y FROM t", "t"),
    ("SELECT * FROM range(5) r, explode(array(1)) e, a", "a"),
    ("SELECT * FROM a LATERAL VIEW explode(m) t AS k, v WHERE k = 1", "a"),
    ("SELECT * FROM VALUES (1, 2), (3, 4) AS v(x, y), a", "a"),
    ("SELECT * FROM VALUES 1, 2 AS v, a", "a"),
    ("SELECT * FROM a TABLESAMPLE (5 ROWS) AS s, b", "a b"),
    ("SELECT * FROM a PIVOT (sum(x) FOR y IN ('p', 'q')) , b", "a b"),
    ("SELECT * FROM (a JOIN b ON a.x = b.x) JOIN (c)", "a b c"),
    ("SELECT * FROM ((SELECT * FROM a) UNION (SELECT * FROM b)) q", "a b"),
    ("SELECT * FROM ((SELECT * FROM a) x JOIN b ON true), c", "a b c"),
    ("SELECT * FROM a LEFT SEMI JOIN b ON a.x = b.x ANTI JOIN c ON true NATURAL JOIN d CROSS JOIN e", "a b c d e"),
    ("SELECT * FROM a FULL OUTER JOIN LATERAL (SELECT * FROM b WHERE b.x = a.x)", "a b"),
    ("SELECT * EXCEPT (x) FROM a EXCEPT SELECT * FROM b INTERSECT TABLE c MINUS VALUES (1)", "a b c"),
    ("TABLE a", "a"),
    ("FROM a SELECT x, y WHERE x = 1", "a"),
    ("FROM a |> JOIN b ON a.x = b.x |> UNION ALL (TABLE c) |> WHERE x IN (SELECT y FROM d)", "a b c d"),
    ("SELECT * FROM f(TABLE a, x => TABLE(b) PARTITION BY y), c", "a b c"),
    ("SELECT sum(x) OVER (PARTITION BY y ORDER BY z), count(*) FILTER (WHERE x) FROM a WINDOW w AS (), v AS ()", "a"),
    ("SELECT transform(xs, x -> x + 1), map('from', 1)['from'] FROM a GROUP BY 1, 2 ORDER BY 1, 2", "a"),
    ("SELECT 'FROM b', \"FROM c\", `from` FROM a -- FROM d", "a"),
    ("SELECT * FROM a WHERE limit = 1 AND offset IN (1, 2) ORDER BY x, y LIMIT 3", "a"),
    ("SELECT CASE WHEN x THEN (SELECT 1 FROM a) END FROM b", "a b"),
    ("SELECT a.from, b.join FROM t a, u b", "t u"),
    ("SELECT * FROM a VERSION AS OF 3 b, c TIMESTAMP AS OF '2020-01-01', d FOR VERSION AS OF :v", "a c d"),
    ("(SELECT * FROM a) UNION ALL (SELECT * FROM b)", "a b"),
    ("SELECT * FROM `x-y`.`a$files`, orders$files f", "x-y.a$files orders$files"),
    ("SELECT * FROM a WITH ('k' = 'v') x JOIN b", "a b"),
    ("SELECT sum(x) FROM a HAVING sum(x) > (SELECT max(y) FROM b) QUALIFY row_number() OVER (ORDER BY x) = 1", "a b"),
    ("SELECT * FROM a, LATERAL (SELECT * FROM b), LATERAL explode(a.xs) t(x)", "a b"),
    ("SELECT * FROM a JOIN b ON a.x = CASE WHEN b.y THEN 1 ELSE 2 END JOIN c ON left(a.s, 2) = c.s", "a b c"),
]  # fmt: skip


@pytest.mark.parametrize(("query", "expected"), CASES)
def test_tables(query, expected):
    found = scan(tokenize(query)).references
    assert sorted(".".join(r.name.parts) for r in found) == sorted(expected.split())


@pytest.mark.parametrize(("query", "_expected"), CASES)
def test_the_same_tables_as_sqlglot_finds(query, _expected):
    sqlglot = pytest.importorskip("sqlglot")
    try:
        tree = sqlglot.parse_one(query, dialect="spark")
    except sqlglot.errors.SqlglotError:
        pytest.skip("not in sqlglot's grammar")
    from sqlglot.optimizer.scope import traverse_scope

    named = {
        (source.db or "", source.name)
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, sqlglot.exp.Table) and isinstance(source.this, sqlglot.exp.Identifier)
    }
    ours = {("", *r.name.parts)[-2:] for r in scan(tokenize(query)).references}
    assert named <= ours


def test_a_reference_knows_its_parts():
    query = "SELECT * FROM db.t /*+ OPTIONS('a'='b') */ VERSION AS OF 1 + 2 TABLESAMPLE (1 ROWS) AS x (c, d) WHERE 1"
    (found,) = scan(tokenize(query)).references
    assert query[found.name.start : found.name.end] == "db.t"
    assert query[found.name.start : found.end].endswith("VERSION AS OF 1 + 2")
    assert query[: found.alias_at].endswith("(1 ROWS)")
    assert (found.alias, found.is_plain) == ("x", False)
    assert found.hint is not None
    assert found.temporal is not None
    assert found.temporal.is_version


def test_a_hint_may_stand_behind_the_alias():
    query = "SELECT * FROM t AS x /*+ OPTIONS('a'='b') */ JOIN u"
    found = scan(tokenize(query)).references[0]
    assert found.hint_outside == (query.index("/*+"), query.index("*/") + 2)


def test_other_hints_are_left_alone():
    found = scan(tokenize("SELECT /*+ BROADCAST(t) */ * FROM t")).references
    assert [r.hint for r in found] == [None]


def test_identifier_clause():
    (found,) = scan(tokenize("SELECT * FROM IDENTIFIER(:t) x")).references
    assert found.name.expression is not None
    assert found.alias == "x"


@pytest.mark.parametrize(
    ("query", "where"),
    [
        ("SELECT * FROM t WHERE a = 1 GROUP BY b", "a = 1"),
        ("SELECT * FROM t WHERE a = 1 AND limit = 3 OR window > 2 LIMIT 5", "a = 1 AND limit = 3 OR window > 2"),
        ("SELECT * FROM t WHERE a = 1 AND map(1, 2)[1] = 2 OR b", "a = 1 AND map(1, 2)[1] = 2 OR b"),
        ("SELECT * FROM t WHERE a = 1 AND CASE WHEN b THEN 1 END OR c", "a = 1 AND CASE WHEN b THEN 1 END OR c"),
        ("SELECT * FROM t WHERE a IN (SELECT b FROM u WHERE c) UNION SELECT 1", "a IN (SELECT b FROM u WHERE c)"),
        ("SELECT * FROM t WHERE a = 1 WINDOW w AS (ORDER BY x)", "a = 1"),
        ("SELECT * FROM t WHERE a = (SELECT 1) EXCEPT ALL SELECT 2", "a = (SELECT 1)"),
        ("SELECT * FROM t WHERE a = 1 CLUSTER BY b", "a = 1"),
    ],
)  # fmt: skip
def test_where_is_never_cut_short(query, where):
    tokens = tokenize(query)
    block = scan(tokens).blocks[0]
    assert query[tokens[block.where[0]].start : tokens[block.where[1] - 1].end] == where
