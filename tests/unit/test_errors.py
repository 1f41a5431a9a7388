"""Errors: a closed list of codes, each with its retry answer, and one exception that survives every boundary."""

import copy
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace_es.vocabulary.errors import ERROR_SPECS, CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Fault

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))
ERRORS = st.builds(
    CodespaceError, st.sampled_from(ErrorCode), st.text(min_size=1), detail=st.dictionaries(st.text(), JSON)
)


def test_every_code_has_its_specification_and_no_other_has():
    assert set(ERROR_SPECS) == set(ErrorCode)


@pytest.mark.parametrize("code", ErrorCode)
def test_a_code_is_its_own_name_and_its_remedy_is_one_sentence(code):
    spec = ERROR_SPECS[code]
    assert code.value == code.name
    assert spec.remedy[0].isupper()
    assert spec.remedy.endswith(".")
    assert 400 <= spec.http_status < 600


@given(ERRORS)
def test_an_error_survives_a_process_boundary(error):
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (copied.code, copied.message, copied.detail) == (error.code, error.message, error.detail)
        assert str(copied) == str(error)


@given(ERRORS)
def test_an_error_that_was_recorded_is_answered_again_alike(error):
    assert Fault.model_validate_json(Fault.of(error).model_dump_json()).to_error().to_wire() == error.to_wire()


def test_ids_stand_at_the_top_and_the_rest_in_detail():
    error = CodespaceError(ErrorCode.VERSION_CONFLICT, "It has changed.", detail={"path": "a"})
    assert error.with_detail(operation_id="op-1", process_id=None).to_wire() == {
        "code": "VERSION_CONFLICT",
        "message": "It has changed.",
        "retry": "after_change",
        "remedy": ERROR_SPECS[ErrorCode.VERSION_CONFLICT].remedy,
        "operation_id": "op-1",
        "detail": {"path": "a"},
    }


def test_an_error_without_detail_has_none_on_the_wire():
    wire = CodespaceError(ErrorCode.TIMEOUT, "Too long.").to_wire()
    assert set(wire) == {"code", "message", "retry", "remedy"}


def test_adding_detail_leaves_the_first_error_as_it_was():
    error = CodespaceError(ErrorCode.TIMEOUT, "Too long.")
    error.with_detail(path="a")
    assert error.detail == {}
