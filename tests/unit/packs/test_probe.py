"""Probes are specs that trainchart accepts, so that what is wrong with a pack is the pack's."""

from __future__ import annotations

import pytest

from trainchart.actions.support.models import resolve_spec
from trainchart.packs.pack import Pack, parse_pack
from trainchart.packs.probe import make_probes
from trainchart.plan.strategies import STRATEGIES

PACK = b"apiVersion: trainchart/v1\nkind: Pack\nname: acme\nversion: 1.2.0\n"


def pack_of(defaults: str) -> Pack:
    return parse_pack({"pack.yaml": PACK, "defaults.yaml": defaults.encode()}, "packs/acme")


@pytest.mark.parametrize(
    "defaults",
    [
        "env: {A: b}\n",
        'volumes: {"*": {storageClass: cephfs}}\n',
        "volumes: {data: {existingClaim: data, mountPath: /in, readOnly: true}, scratch: {size: 5Gi}}\n",
        'volumes: {"*": {uri: "s3://bucket/x"}}\n',
    ],
)
def test_every_probe_of_a_good_pack_resolves(defaults: str) -> None:
    pack = pack_of(defaults)
    plans = [resolve_spec(probe, (pack,)) for probe in make_probes(pack.layers)]
    assert [plan.spec.strategy for plan in plans] == list(STRATEGIES)
    assert all(set(plan.roles) == set(STRATEGIES[plan.spec.strategy].roles) for plan in plans)
