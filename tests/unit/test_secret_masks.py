"""Passwords, tokens and keys do not show in a command line or in values."""

from __future__ import annotations

import pytest

from trainchart.secret_masks import mask_command, mask_values


@pytest.mark.parametrize(
    ("word", "masked"),
    [
        ("env.TOKEN=abc", "env.TOKEN=***"),
        ("--set=env.API_KEY=abc==", "--set=env.API_KEY=***"),
        ("env.DB_PASSWORD=a\\,b,env.A=1", "env.DB_PASSWORD=***,env.A=1"),
        ('env={"hubToken": "a,b", "A": "1"}', 'env={"hubToken": ***, "A": "1"}'),
        ("args={--api-key=abc,--steps=5}", "args={--api-key=***,--steps=5}"),
        ("hyperparameters.padToken=5", "hyperparameters.padToken=5"),
        ("hyperparameters.learningRate=0.1", "hyperparameters.learningRate=0.1"),
        ("charts/token", "charts/token"),
    ],
)
def test_values_of_secrets_are_masked_in_a_command(word: str, masked: str) -> None:
    assert mask_command(["run", word]) == ["run", masked]


def test_values_of_secrets_are_masked_in_values() -> None:
    values = {"env": {"TOKEN": "abc", "A": "1", "B_KEY": {"valueFrom": {}}}, "list": [{"password": "x"}], "token": 5}
    assert mask_values(values) == {**values, "env": {**values["env"], "TOKEN": "***"}, "list": [{"password": "***"}]}  # type: ignore[dict-item]


def test_a_value_behind_its_flag_is_masked():
    words = ["fetch", "--password", "a b", "--hub-token", "--api-key", "x", "--name", "y"]
    assert mask_command(words) == ["fetch", "--password", "***", "--hub-token", "--api-key", "***", "--name", "y"]
