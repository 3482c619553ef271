"""The policy of a pack: what it locks, which rules it has, and what it waives. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from trainchart.errors import SpecError
from trainchart.packs.lock_rules import make_lock_rules
from trainchart.packs.locks import Lock, LockedPath, family_lock_name, make_family_locks, make_locks
from trainchart.packs.rules import PackRule, Requirements, RuleFile, find_rule_problems, make_rules
from trainchart.packs.section_file import parse_section_document
from trainchart.packs.waivers import PackWaiver, WaiverFile, find_waiver_problems, waivers_by_rule
from trainchart.spec.section import Section

POLICY_FILE = "policy.yaml"


class PolicyFile(Section):
    """What a pack demands of every model."""

    api_version: Literal["trainchart/v1"]
    """Version of the format."""
    kind: Literal["Policy"]
    """Kind of file."""
    locked: dict[str, Lock] = Field(default_factory=dict)
    """Locked paths of the spec: dotted keys, with * for every role or volume."""
    families: dict[str, dict[str, Lock]] = Field(default_factory=dict)
    """Locked values of charts of families: by the name of the family, dotted keys."""
    requires: Requirements = Requirements()
    """Common rules."""
    rules: dict[str, RuleFile] = Field(default_factory=dict)
    """Rules of the pack's own, by name."""
    waivers: list[WaiverFile] = Field(default_factory=list)
    """Models that may break a rule or lock of this file for some time."""


@dataclass(frozen=True)
class Policy:
    """What a pack demands."""

    locks: tuple[LockedPath, ...] = ()
    family_locks: Mapping[str, tuple[LockedPath, ...]] = field(default_factory=dict)
    """Of the values of charts, by the name of their family."""
    rules: tuple[PackRule, ...] = ()
    """Its rules, and the locks that are rules as well."""
    waivers: tuple[PackWaiver, ...] = ()


def parse_policy(text: str, file: str, layer: str) -> Policy:
    """Return the policy of a pack.

    Raises:
        SpecError: unknown keys and paths, locks that no value can satisfy, rules that are not CEL, and waivers of
            what is not there; each with its line.
    """
    policy, document = parse_section_document(text, file, PolicyFile, "policy", layer)
    waivers = waivers_by_rule(policy.waivers, document.origins)
    locks = make_locks(policy.locked, document.origins, waivers)
    family_locks = {
        family: make_family_locks(family, locked, document.origins, waivers)
        for family, locked in policy.families.items()
    }
    rules = make_rules(policy.requires, policy.rules, document.origins, waivers)
    every = tuple(waiver for found in waivers.values() for waiver in found)
    in_families = (family_lock_name(family, key) for family, locked in policy.families.items() for key in locked)
    known = (*(rule.name for rule in rules), *policy.locked, *in_families)
    problems = (*find_rule_problems(rules), *find_waiver_problems(every, known))
    if problems:
        raise SpecError("the policy is not valid", problems=problems)
    return Policy(locks, family_locks, (*rules, *make_lock_rules(locks)), every)
