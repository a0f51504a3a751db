"""Tokens and statements."""

import pytest

from lakekit.sql.lexer import Kind, split, string_value, tokenize


def words(text):
    return [token.text for token in tokenize(text)]


def test_tokens_know_their_places():
    text = "SELECT `a``b` , 'it''s' FROM t -- end"
    assert all(text[t.start : t.end] == t.text for t in tokenize(text))
    assert words(text) == ["SELECT", "`a``b`", ",", "'it''s'", "FROM", "t"]
    assert tokenize(text)[1].name == "a`b"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/* x /* nested */ y */b", ["a", "b"]),
        ("a -- b\nc", ["a", "c"]),
        ("a -- b\\\nc\nd", ["a", "d"]),
        ("/*+ OPTIONS('a'='*') */ x", ["/*+ OPTIONS('a'='*') */", "x"]),
        (r"'a\'b' x", [r"'a\'b'", "x"]),
        (r"r'a\' x", [r"r'a\'", "x"]),
        ('"a\\"b" x', ['"a\\"b"', "x"]),
        ("1.5e3D .5 1L t.1", ["1.5e3D", ".5", "1L", "t", ".", "1"]),
        ("orders$files `a$b`", ["orders$files", "`a$b`"]),
        ("a->b c<=>d e|>f g::int", ["a", "->", "b", "c", "<=>", "d", "e", "|>", "f", "g", "::", "int"]),
        ("array<array<int>>", ["array", "<", "array", "<", "int", ">", ">"]),
        ("größe Ω", ["größe", "Ω"]),
        ("'not closed", ["'not closed"]),
        ("1_a 2022_x", ["1_a", "2022_x"]),
    ],
)
def test_tokens(text, expected):
    assert words(text) == expected


def test_hints_are_no_comments():
    assert [t.kind for t in tokenize("/*+ x */ /* y */")] == [Kind.HINT]


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'it''s'", "it's"),
        (r"'a\nb\t\\'", "a\nb\t\\"),
        (r"'\%\_'", r"\%\_"),
        (r"r'a\n'", r"a\n"),
        ('"x\'y"', "x'y"),
        (r"'\u00e9\101'", "éA"),
        ("''", ""),
    ],
)
def test_string_value(literal, value):
    assert string_value(literal) == value


def test_split():
    text = "SELECT ';' ; -- a;b\n/* ; */ SELECT \";\", `;` ;; SELECT 1;"
    assert split(text) == ["SELECT ';'", 'SELECT ";", `;`', "SELECT 1"]


def test_nothing_to_split():
    assert split(" ; -- only comments\n ;") == []


@pytest.mark.parametrize(
    "script",
    [
        "BEGIN DECLARE x INT; SET x = 1; END",
        "BEGIN IF a THEN SELECT 1; ELSE SELECT 2; END IF; END",
        "BEGIN SELECT CASE WHEN a THEN 1 END; SELECT IF(a, 1, 2); END",
        "l: BEGIN WHILE x < 3 DO SET x = x + 1; END WHILE; END l",
        "BEGIN outer: LOOP LEAVE outer; END LOOP outer; BEGIN SELECT 1; END; END",
        "BEGIN REPEAT SET x = 1; UNTIL x > 1 END REPEAT; FOR r AS SELECT 1 DO SELECT r; END FOR; END",
        "BEGIN CASE WHEN x THEN SELECT 1; END CASE; DROP TABLE IF EXISTS t; END",
    ],
)
def test_a_script_is_one_statement(script):
    assert split(f"SELECT 0; {script}; SELECT 2") == ["SELECT 0", script, "SELECT 2"]
