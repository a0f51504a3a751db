"""Text that knows where it came from."""

from lakekit.sql.text import Edit, SqlText


def test_the_users_letters_keep_their_places():
    text = SqlText.user("SELECT a FROM t", 10)
    assert text.origin(0) == 10
    assert text.origin(7) == 17
    assert text.span(7, 8).origin(0) == 17


def test_generated_text_stands_for_a_place_or_for_nothing():
    text = SqlText.user("abc") + "XYZ" + SqlText.generated("GEN", 2)
    assert str(text) == "abcXYZGEN"
    assert [text.origin(i) for i in (1, 4, 7)] == [1, None, 2]


def test_replacing_keeps_the_places_of_the_rest():
    text = SqlText.user("SELECT * FROM orders WHERE x = 1")
    new = text.replace([Edit(14, 20, "(SELECT 1) AS orders"), Edit(7, 8, "y")])
    assert str(new) == "SELECT y FROM (SELECT 1) AS orders WHERE x = 1"
    assert new.origin(str(new).index("x = 1")) == 27
    assert new.origin(str(new).index("SELECT 1")) == 14


def test_insertions_and_nested_replacements():
    text = SqlText.user("a b").replace([Edit(1, 1, "!")]).replace([Edit(0, 1, SqlText.user("z", 99))])
    assert str(text) == "z! b"
    assert text.origin(0) == 99
    assert text.origin(3) == 2


def test_join():
    joined = SqlText.join([SqlText.user("a", 5), "b"], ", ")
    assert str(joined) == "a, b"
    assert joined.origin(0) == 5
