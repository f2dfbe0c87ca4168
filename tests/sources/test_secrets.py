"""No secret in a text: of a URL, of the environment, of fsspec's configuration, or after a name that says so."""

from __future__ import annotations

import time

import fsspec.config
import pytest

from dkl.sources.secrets import values_without_secrets, without_secrets

SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfi"
SAID = [
    f"https://user:{SECRET}@host/rows.csv?X-Amz-Signature={SECRET}",
    f"AWS_SECRET_ACCESS_KEY={SECRET} in the environment",
    f"storage_options {{'key': 'AKIA', 'secret': '{SECRET}'}}",
    f'{{"aws_session_token": "{SECRET}", "region": "x"}}',
    f"headers: {{'Authorization': 'AWS4-HMAC-SHA256 Credential=AKIA/2026, Signature={SECRET}'}}",
    f"AccountKey={SECRET};EndpointSuffix=core",
]


@pytest.mark.parametrize("text", SAID)
def test_what_follows_a_name_is_hidden(text: str) -> None:
    """And the rest is still there."""
    found = without_secrets(text)
    assert SECRET not in found
    assert "..." in found or "https://host/rows.csv" in found


def test_values_of_the_environment_are_hidden_wherever_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also without a name beside them; where a token's file lies is no secret, and short words are not replaced."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "/" + SECRET)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token")
    monkeypatch.setenv("HUB_TOKEN", "rows")
    said = f"the server refused /{SECRET}: see /var/run/token for 12 rows"
    assert without_secrets(said) == "the server refused ...: see /var/run/token for 12 rows"


def test_secrets_of_fsspec_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """As they are given in its files: s3fs calls them key and secret."""
    monkeypatch.setitem(
        fsspec.config.conf, "s3", {"key": "AKIAIOSFODNN7", "secret": SECRET, "endpoint_url": "http://h"}
    )
    assert without_secrets(f"AKIAIOSFODNN7 and {SECRET} at http://h") == "... and ... at http://h"


def test_plain_words_stay() -> None:
    """Nothing is taken from what holds no secret."""
    for said in ("12 rows of s3://bucket/a.zarr, 3 passes", "column 'monkey': 5 values", "the key dkl-gram-12 is lost"):
        assert without_secrets(said) == said
    event = {"rows": 5, "alpha": [0.1, None], "data": "http://u:pw1234@h/a", "api_key": SECRET, "best": True}
    assert values_without_secrets(event) == {**event, "data": "http://h/a", "api_key": "..."}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('password: "two words"', 'password: "..."'),
        ("{'token': 'a b c', 'rows': 3}", "{'token': '...', 'rows': 3}"),
        ("passphrase=abc rows=3", "passphrase=... rows=3"),
        ("sent with bearer eyJhbGciOi.x-y", "sent with bearer ..."),
    ],
)
def test_values_of_several_words(text, left):
    """All that a quote holds is hidden, and what is no secret stays."""
    assert without_secrets(text) == left


def test_long_texts_take_no_time():
    """Twice the text, about twice the time: a row of letters in an error must not stop a log."""
    seconds = {}
    for size in (20_000, 80_000):
        begun = time.process_time()
        for text in ("a" * size, "token" * (size // 5), "x=" * (size // 2), "a " * (size // 2)):
            without_secrets(text)
        seconds[size] = time.process_time() - begun
    assert seconds[80_000] < 16 * max(seconds[20_000], 0.01)
