"""New text for what matches: filled in, indented, in the file's own line ends, and nothing else touched."""

import base64
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.structural.examining import Examiner
from adapters.structural.rewriting import (
    Captured,
    OverlapError,
    Replacement,
    chosen,
    fill_template,
    parse_template,
    spliced,
)


def rewrite(content: str | bytes, language: str, *pairs: tuple[str, str], **asked: Any) -> dict[str, Any]:
    """Return a worker's answer for one file, its new content decoded."""
    examiner = Examiner()
    selector = asked.pop("selector", None)
    examiner.answer({
        "kind": "job", "patterns": [pat for pat, _ in pairs], "replacements": [out for _, out in pairs],
        "selector": selector, "keep": 0, "text_characters_max": 500,
    })
    raw = content.encode() if isinstance(content, str) else content
    answer = examiner.answer({
        "kind": "file", "language": language, "content": base64.b64encode(raw).decode(), **asked,
    })
    assert answer is not None
    if "content" in answer:
        answer["content"] = base64.b64decode(answer["content"]).decode()
    return answer


def made_of(content: str, language: str, pat: str, out: str, **asked: Any) -> str:
    """Return the file after one rewriting; the file itself if nothing changes."""
    answer = rewrite(content, language, (pat, out), **asked)
    assert "broken_line" not in answer
    return answer.get("content", content)


@pytest.mark.parametrize(("language", "before", "pat", "out", "after"), [
    ("python", "print(a, 'é🎉')\n", "print($A, $B)", "log($B, $A)", "log('é🎉', a)\n"),
    ("python", "f(1, 2, 3)\n", "f($$$ARGS)", "g(0, $$$ARGS)", "g(0, 1, 2, 3)\n"),
    ("python", "f()\n", "f($$$ARGS)", "g($$$ARGS)", "g()\n"),
    ("python", "f(x)\n", "f($A)", "g($A, $MISSING)", "g(x, )\n"),
    ("python", "f(x)\n", "f($A)", "g($A, '$lower')", "g(x, '$lower')\n"),
    ("python", "f(x)\n", "f($A)", "$As", "xs\n"),
    ("python", "x = f(x)\n", "f($_)", "g()", "x = g()\n"),
    ("python", "f(x)\n", "f($A)", "", "\n"),
    ("typescript", "const a = foo!.bar;\n", "$X!.bar", "$X?.bar", "const a = foo?.bar;\n"),
    ("tsx", "const a = <Old x={1}/>;\n", "<Old $$$P/>", "<New $$$P/>", "const a = <New x={1}/>;\n"),
    ("go", "package p\n\nfunc f() error {\n\treturn errors.New(fmt.Sprintf(\"%d ü\", n))\n}\n",
     "errors.New(fmt.Sprintf($$$A))", "fmt.Errorf($$$A)",
     "package p\n\nfunc f() error {\n\treturn fmt.Errorf(\"%d ü\", n)\n}\n"),
    ("rust", "fn f() { let x = y.unwrap(); }\n", "$X.unwrap()", '$X.expect("set")',
     'fn f() { let x = y.expect("set"); }\n'),
    ("java", "class A { void f() { System.out.println(\"hé\"); } }\n", "System.out.println($X);", "log.info($X);",
     "class A { void f() { log.info(\"hé\"); } }\n"),
    ("csharp", "class A { int x = Old.Get(1); }\n", "Old.Get($X)", "New.Get($X)", "class A { int x = New.Get(1); }\n"),
])
def test_a_match_becomes_the_replacement_with_its_metavariables(language, before, pat, out, after):
    asked = {"selector": "call_expression"} if language == "go" else {}
    if asked:
        pat = f"package p\nfunc t() {{ {pat} }}"
    assert rewrite(before, language, (pat, out), **asked)["content"] == after


def test_line_ends_and_the_mark_at_the_beginning_stay():
    before = "\ufeffif x:\r\n\tf(1)\r\n\ty = 2\r\n"
    assert made_of(before, "python", "f($A)", "g(\n    $A,\n)") == (
        "\ufeffif x:\r\n\tg(\r\n\t    1,\r\n\t)\r\n\ty = 2\r\n"
    )


def test_a_replacement_of_several_lines_is_indented_by_the_white_space_of_the_match_itself():
    before = "if a:\n\tif b:\n\t\tf(x)\n"
    assert made_of(before, "python", "f($A)", "with $A:\n\tg($A)") == "if a:\n\tif b:\n\t\twith x:\n\t\t\tg(x)\n"


def test_blank_lines_of_a_replacement_get_no_white_space():
    assert made_of("if a:\n    f(x)\n", "python", "f($A)", "g($A)\n\nh($A)") == "if a:\n    g(x)\n\n    h(x)\n"


def test_what_is_captured_keeps_its_shape_in_its_new_place():
    before = "def f():\n    if a:\n        one(\n            1,\n        )\n\n        two()\n"
    assert made_of(before, "python", "if a:\n    $$$BODY", "with b:\n    while c:\n        $$$BODY") == (
        "def f():\n    with b:\n        while c:\n"
        "            one(\n                1,\n            )\n\n            two()\n"
    )


def test_lines_within_strings_are_never_indented():
    before = 'def f():\n    if a:\n        x = """one\n        two\n    three"""\n        y = 1\n'
    assert made_of(before, "python", "if a:\n    $$$BODY", "$$$BODY") == (
        'def f():\n    x = """one\n        two\n    three"""\n    y = 1\n'
    )


def test_several_rewritings_are_made_of_the_file_as_it_is():
    answer = rewrite("f(1)\ng(2)\n", "python", ("f($A)", "g($A)"), ("g($A)", "f($A)"))
    assert (answer["content"], answer["kept"]) == ("g(1)\nf(2)\n", 2)


def test_nested_matches_overlap_and_both_lines_are_named():
    assert rewrite("x = 1\nf(\n  f(1))\n", "python", ("f($A)", "g($A)"))["overlap"] == [2, 3]


def test_two_rewritings_of_the_same_text_overlap():
    assert rewrite("f(1)\n", "python", ("f($A)", "g($A)"), ("f(1)", "h()"))["overlap"] == [1, 1]


def test_of_more_matches_than_the_limit_the_first_are_replaced():
    answer = rewrite("f(1)\nf(2)\nf(3)\n", "python", ("f($A)", "g($A)"), limit=2)
    assert (answer["content"], answer["kept"], answer["changes"]) == ("g(1)\ng(2)\nf(3)\n", 2, 3)


def test_a_match_that_reads_already_as_its_replacement_is_no_change():
    answer = rewrite("f(1)\n", "python", ("f($A)", "f($A)"))
    assert (answer["count"], answer["changes"]) == (1, 0)
    assert "content" not in answer


@pytest.mark.parametrize(("before", "language", "pat", "out", "line"), [
    ("x = 1\nf(1)\n", "python", "f($A)", "g($A", 2),
    ("class A { int f() { return 1; } }\n", "java", "return 1;", "return 1", 1),
])
def test_a_file_that_would_not_parse_any_more_is_marked(before, language, pat, out, line):
    assert rewrite(before, language, (pat, out))["broken_line"] == line


def test_a_file_that_was_broken_before_is_not_marked():
    assert "broken_line" not in rewrite("def (:\nf(1)\n", "python", ("f($A)", "g($A)"))


@pytest.mark.parametrize(("content", "reason"), [(b"f(1)\0", "binary"), (b"f(1) # \xff", "UTF-8")])
def test_what_is_no_text_is_skipped(content, reason):
    assert reason in rewrite(content, "python", ("f($A)", "g($A)"))["reason"]


PIECES = st.sampled_from(["$A", "$$$MANY", "$B", "x", " ", "\n", "\t", "é", "\r\n", "()", "$lower", "$5"])


@given(pieces=st.lists(PIECES, max_size=12), indent=st.sampled_from(["", "\t", "    ", " \t"]))
def test_a_filled_template_says_every_word_of_it_in_order(pieces, indent):
    captures = {"A": Captured("one\n  two", ""), "MANY": Captured("many, more", "\t")}
    filled = fill_template(parse_template("".join(pieces)), captures, indent=indent, line_end="\n")
    expected = "".join(pieces).replace("$$$MANY", "many, more").replace("$A", "one\n  two").replace("$B", "")
    assert "".join(filled.split()) == "".join(expected.split())


@given(text=st.text("ab\n\té", max_size=60), cuts=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60))))
def test_replacements_touch_nothing_but_their_own_places(text, cuts):
    wanted = [Replacement(min(cut), max(cut), f"<{n}>") for n, cut in enumerate(cuts) if max(cut) <= len(text)]
    try:
        kept = chosen(wanted, None)
    except OverlapError:
        taken = sorted((each.start, each.end) for each in wanted)
        assert any(
            later[0] < earlier[1] or later[0] == earlier[0]
            for earlier, later in pairwise(taken)
        )
        return
    new = spliced(text, kept)
    position = 0
    for each in kept:
        assert new.startswith(text[position : each.start] + each.text)
        new = new[each.start - position + len(each.text):]
        position = each.end
    assert new == text[position:]
