"""Computed ids: one name, one id. They are stored, so they never change."""

import re

from hypothesis import given
from hypothesis import strategies as st

from codespace_es.vocabulary.identifiers import claim_stream, workspace_key

FORM = re.compile(r"(wsp|claim)-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)


def test_the_ids_of_stored_logs_are_found_again():
    assert workspace_key("machine-1", "/srv/demo") == "wsp-0866ddfa-f6b0-5066-8c75-7bc5922888e7"
    assert claim_stream("operation_key", "key-1") == "claim-391cff5d-62c9-582a-901d-3b017531cb06"


@given(first=st.tuples(TEXT, TEXT), second=st.tuples(TEXT, TEXT))
def test_two_directories_or_claims_share_an_id_only_if_they_are_one(first, second):
    assert (workspace_key(*first) == workspace_key(*second)) == (first == second)
    assert (claim_stream(*first) == claim_stream(*second)) == (first == second)


def test_text_that_no_encoding_has_can_be_asked_for():
    """A command line holds such text where its bytes aren't UTF-8."""
    assert claim_stream("operation_key", "\udcff") != claim_stream("operation_key", "\udcfe")


@given(TEXT, TEXT)
def test_ids_have_their_form(kind, name):
    assert FORM.fullmatch(workspace_key(kind, name))
    assert FORM.fullmatch(claim_stream(kind, name))
