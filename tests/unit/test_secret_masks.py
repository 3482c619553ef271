"""Passwords, tokens and keys do not show in a command line or in values."""

from __future__ import annotations

import pytest

from trainchart.secret_masks import mask_command, mask_values
from trainchart.secret_names import hide_command_logins, holds_command_login


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


@pytest.mark.parametrize(
    "command",
    [
        "curl -sf -u admin:SECRET http://x/",
        "curl --user='admin:SECRET'",
        "smbclient -U me%SECRET //x",
        "redis-cli -h redis -p 6379 -a SECRET ping",
        "mysqladmin ping -h db -u root -pSECRET",
        "docker login -u a -p SECRET r",
        "sshpass -p SECRET ssh h",
        "ldapsearch -x -w SECRET",
        "mc --quiet alias set minio http://minio:9000 ACCESS SECRET && mc ls",
        "mc config host add minio http://minio:9000 ACCESS SECRET",
        "aws configure set aws_secret_access_key SECRET",
        "openssl rsa -passin pass:SECRET",
    ],
)
def test_a_password_without_a_name_is_masked(command: str) -> None:
    assert hide_command_logins(command.replace("SECRET", "hunter22"), "***") == command.replace("SECRET", "***")
    assert not holds_command_login(command.replace("SECRET", "$SECRET"))


@pytest.mark.parametrize(
    "command",
    ["date -u +%H:%M", "docker run -p 80:80 x", "redis-cli -p 6379 ping", "mkdir -p a; mysql -e x", "python -u a:b"],
)
def test_other_words_of_a_command_are_not_masked(command: str) -> None:
    assert not holds_command_login(command)
