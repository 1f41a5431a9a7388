"""How patterns are read: metavariables, faults that a caller is told, the word that spares the parser."""

import re
from pathlib import Path

import pytest
from ast_grep_py import SgRoot

from adapters.structural.languages import LANGUAGES, language_called, language_of
from adapters.structural.matching import ParsedFile, PatternFaultError, compiled
from adapters.structural.patterns import fault_of_pattern, fault_of_replacement, names_in, unbound_names


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda each: each.name)
def test_the_engine_knows_every_language(language):
    assert SgRoot("", language.name).root().range().start.index == 0
    for name in (language.name, *language.aliases):
        assert language_called(name.upper()) == language.name


def test_the_page_names_every_language():
    page = (Path(__file__).parents[3] / "docs" / "structural-edits.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"^Languages .*?: (.*?)\.$", page, re.DOTALL | re.MULTILINE)
    names = [f"{each.name} ({', '.join(each.aliases)})" if each.aliases else each.name for each in LANGUAGES]
    assert " ".join(told.split()) == ", ".join(names)


def test_a_language_is_known_by_names_and_endings():
    assert [language_called(name) for name in ("C#", "sh", " py ", "golang", "cobol", "")] == [
        "csharp", "bash", "python", "go", None, None,
    ]
    assert [language_of(path) for path in ("a/b.PY", "x.tsx", "Gemfile", "py", "a.b/c", "x.")] == [
        "python", "tsx", "ruby", None, None, None,
    ]
    endings = [ending for language in LANGUAGES for ending in language.endings]
    assert len(endings) == len(set(endings))


@pytest.mark.parametrize(("pattern", "reason"), [
    ("", "empty"), (" \n", "empty"), ("f($$ARGS)", "$$$ARGS"), ("f(\ud800)", "surrogate"), ("f(\0)", "NUL"),
])
def test_a_pattern_that_no_language_can_use_is_refused(pattern, reason):
    assert reason in (fault_of_pattern(pattern) or "")


@pytest.mark.parametrize("pattern", ["f($$$ARGS)", "$A", "$$name", "a $ b", "$$$", "$lower"])
def test_a_pattern_that_some_language_can_use_is_not(pattern):
    assert fault_of_pattern(pattern) is None


def test_a_replacement_names_what_it_means():
    assert fault_of_replacement("f($$$ARGS, $A, $x)") is None
    assert "name it" in (fault_of_replacement("f($$$)") or "")
    assert "$$$A" in (fault_of_replacement("f($$A)") or "")
    assert "NUL" in (fault_of_replacement("f(\0)") or "")
    assert unbound_names("f($A, $$$B, $_C, $Name)", "g($A, $$$A, $$$B, $_C, $D, $D, $Name)") == ["$_C", "$D", "$N"]


def test_names_that_begin_with_a_line_are_not_remembered():
    assert names_in("f($A1, $_B, $_, $$$REST, $$$, $lower)") == names_in("$A1 $$$REST")


@pytest.mark.parametrize(("pattern", "language", "selector", "reason"), [
    ("a\nb", "python", None, "several nodes"),
    ("$$$A", "python", None, "can't be all of it"),
    ("f($A)", "python", "no_such_kind", "kind `no_such_kind` is invalid"),
    ("f($A)", "python", "if_statement", "no node of the selector's kind"),
])
def test_a_fault_of_the_engine_is_told_in_one_line(pattern, language, selector, reason):
    with pytest.raises(PatternFaultError) as fault:
        compiled(pattern, language, selector)
    assert reason in str(fault.value)
    assert "\n" not in str(fault.value)
    assert "backtrace" not in str(fault.value).lower()


@pytest.mark.parametrize(("pattern", "language", "selector", "reading"), [
    ("print($A)", "python", None, ("call", False, b"print")),
    ("print(", "python", None, ("ERROR", True, None)),
    ("$A", "python", None, ("identifier", False, None)),
    ("$X.unwrap()", "rust", None, ("call_expression", False, b"unwrap")),
    ("func t() { fmt.Println($A) }", "go", "call_expression", ("call_expression", False, b"Println")),
    ("ECHO $A;", "php", None, ("echo_statement", False, None)),
    ("f('long words here')", "python", None, ("call", False, b"long words here")),
])
def test_a_reading_says_what_is_looked_for(pattern, language, selector, reading):
    found = compiled(pattern, language, selector)
    assert (found.kind, found.is_broken, found.word) == reading


@pytest.mark.parametrize(("pattern", "language", "code", "count"), [
    ("print($A)", "python", "print(a)\nprint(a, b)\n  ", 1),
    ("print($a)", "python", "print(a)\n", 0),
    ("f($A, $A)", "python", "f(x, x)\nf(x, y)\n", 1),
    ("ECHO $A;", "php", "<?php echo $a; Echo $b;", 2),
    ("foo", "python", "foo\nfoo.bar\nfood\n", 2),
])
def test_a_pattern_finds_code_by_its_structure(pattern, language, code, count):
    found = compiled(pattern, language, None)
    assert len(ParsedFile(code, language).matches(found)) == count
    if count:
        assert (found.word or b"") in code.encode()
