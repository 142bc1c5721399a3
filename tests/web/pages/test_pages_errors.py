"""Pages report bad values and keep their form."""

from __future__ import annotations

import re

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
    """The error is shown above the form, and the field keeps its text. The JSON version has the same error."""
    page = client.get(address)
    assert page.status_code == 400
    assert 'role="alert"' in page.text
    assert '<form action="' in page.text.partition("<main")[2]
    if "by=" not in address and "outcome" not in address:
        assert 'value="banana"' in page.text
    answer = client.get(address.replace("?", ".json?"))
    assert answer.status_code == 400
    assert "banana" in answer.json()["error"]


@pytest.mark.parametrize("path", ["/why", "/waste", "/digest", "/outcomes", "/tools", "/errors", "/files/log"])
def test_a_page_with_an_error_is_of_the_same_kind(client: Client, path: str) -> None:
    """Styles and scripts tell pages apart by the class of the body."""
    classes = [
        re.findall(r'<body class="([^"]+)"', client.get(address).text) for address in (path, f"{path}?until=banana")
    ]
    assert len(classes[0]) == 1
    assert classes[0] == classes[1]


def test_the_form_drops_bad_values_without_a_field(client: Client) -> None:
    """A hidden bad value would be wrong every time."""
    text = client.get("/usage?by=banana&measure=tokens").text.partition("<main")[2]
    assert 'name="by"' not in text
    assert 'name="measure"' in text
