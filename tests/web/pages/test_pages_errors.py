"""What says nothing sensible: the page says so, and keeps its form."""

from __future__ import annotations

import pytest
from tests.web.client import Client


@pytest.mark.parametrize(
    "address",
    [
        "/usage?since=banana",
        "/usage?by=banana",
        "/calls?outcome=banana",
        "/sessions?since=banana",
        "/files?until=banana",
    ],
)
def test_a_bad_value_keeps_the_form(client: Client, address: str) -> None:
    """The sentence stands above the form, and what was typed is still in its field; programs are told the same."""
    found = client.get(address)
    assert found.status_code == 400
    assert 'role="alert"' in found.text
    assert '<form action="' in found.text.partition("<main")[2]
    if "by=" not in address and "outcome" not in address:
        assert 'value="banana"' in found.text
    told = client.get(address.replace("?", ".json?"))
    assert told.status_code == 400
    assert "banana" in told.json()["error"]


def test_a_value_that_no_field_shows_is_not_sent_again(client: Client) -> None:
    """What was wrong would be wrong each time."""
    text = client.get("/usage?by=banana&measure=tokens").text.partition("<main")[2]
    assert 'name="by"' not in text
    assert 'name="measure"' in text
