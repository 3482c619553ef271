"""Hyperparameters of a training program: the library's own, and those that a program adds."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from trainchart_training.errors import SettingsError
from trainchart_training.hyperparameters import Hyperparameters, parse_hyperparameters


@dataclass(frozen=True)
class Settings(Hyperparameters):
    learning_rate: float = 0.05
    activation: str = "relu"
    use_bias: bool = True


def test_names_are_camel_case_outside_and_the_rest_keep_defaults() -> None:
    parsed = parse_hyperparameters('{"learningRate": 1, "maxSteps": 7, "seed": 0, "useBias": false}', Settings)
    assert parsed == Settings(learning_rate=1.0, max_steps=7, seed=0, use_bias=False)
    assert isinstance(parsed.learning_rate, float)
    assert parse_hyperparameters("", Settings) == Settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"maxSteps": "many"}', "hyperparameter maxSteps: expected a whole number of at least 1, got 'many'"),
        ('{"maxSteps": 0}', "hyperparameter maxSteps: expected a whole number of at least 1, got 0"),
        ('{"batchSize": 64.5}', "hyperparameter batchSize: expected a whole number of at least 1, got 64.5"),
        ('{"batchSize": true}', "hyperparameter batchSize: expected a whole number of at least 1, got True"),
        ('{"clipNorm": -1}', "hyperparameter clipNorm: expected a number of at least 0, got -1"),
        (
            '{"maxSteps": 1' + "0" * 400 + "}",
            "hyperparameter maxSteps: expected a whole number of at least 1, got 1000000",
        ),
        ('{"clipNorm": 1' + "0" * 400 + "}", "hyperparameter clipNorm: expected a number of at least 0, got 1000000"),
        ('{"clipNorm": Infinity}', "hyperparameter clipNorm: expected a number of at least 0, got inf"),
        ('{"learningRate": NaN}', "hyperparameter learningRate: expected a number, got nan"),
        ('{"activation": 3}', "hyperparameter activation: expected a string, got 3"),
        ('{"earlyStopMode": "up"}', "hyperparameter earlyStopMode: expected one of auto, min, max, got 'up'"),
        ('{"earlyStopMode": 1}', "hyperparameter earlyStopMode: expected one of auto, min, max, got 1"),
        ('{"useBias": 1}', "hyperparameter useBias: expected true or false, got 1"),
        (
            '{"learning_rate": 0.1}',
            "hyperparameter 'learning_rate' is not known; use one of maxSteps, batchSize",
        ),
        ("[1]", "TRAINCHART_HYPERPARAMETERS: expected a JSON object, got [1]"),
        ("{", "TRAINCHART_HYPERPARAMETERS is not JSON: Expecting property name"),
        ("[" * 100_000, "TRAINCHART_HYPERPARAMETERS is not JSON: maximum recursion depth exceeded"),
    ],
)
def test_wrong_hyperparameters_are_named(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=f"^{re.escape(message)}"):
        parse_hyperparameters(text, Settings)


def test_what_a_class_refuses_itself_is_a_wrong_setting() -> None:
    @dataclass(frozen=True)
    class Even(Hyperparameters):
        units: int = 2

        def __post_init__(self) -> None:
            if self.units % 2:
                raise ValueError("units must be even")

    assert parse_hyperparameters('{"units": 4}', Even).units == 4
    with pytest.raises(SettingsError, match=r"^hyperparameters: units must be even$"):
        parse_hyperparameters('{"units": 3}', Even)


def test_a_class_whose_fields_nobody_would_see_is_refused() -> None:
    class Undecorated(Hyperparameters):
        learning_rate: float = 0.05

    class Nothing(Hyperparameters):
        """Adds none."""

    with pytest.raises(SettingsError, match=r"^class Undecorated is not itself a dataclass: put @dataclass\(frozen"):
        parse_hyperparameters('{"learningRate": 0.1}', Undecorated)
    assert parse_hyperparameters('{"maxSteps": 7}', Nothing).max_steps == 7
