"""Says whether all pods of a release find nodes at once, as the scheduler of Kubernetes would place them. Pure.

The scheduler places one pod after the other and never moves one, so a release that fits when its pods are well placed
may still wait. It is played here many times, with its usual scores and the pods in another order each time. Where no
game ends well, a search looks for any placement at all. What only that finds, or only some games, is a maybe.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trainchart.doctor.needs import Amounts, PodGroup, list_ports
from trainchart.doctor.refusals import describe_refusals, find_open_nodes
from trainchart.doctor.room import Room
from trainchart.doctor.topology import Standing, TopologyRules

YES, NO, MAYBE = "yes", "no", "maybe"
_GAMES = 40
_LEAST_GAMES = 4
_TRIES = 2_000_000
"""Nodes looked at for pods in all games together: some seconds."""
_SEARCH = 50_000
"""Placements that the search tries before it gives up."""
_SEARCH_PODS = 300
"""Pods that it places at most."""
_SPREAD_WEIGHT = 2.0
_SCORED = ("cpu", "memory")


class Chance(Protocol):
    """What decides the order of the games, such as random.Random(0)."""

    def random(self) -> float: ...

    def shuffle(self, x: list[int]) -> None: ...


@dataclass(frozen=True)
class Fit:
    """Whether the pods fit, in how many games, and which find no node in the best game that was lost."""

    verdict: str
    won: int
    played: int
    waiting: tuple[tuple[str, int, str], ...] = ()
    """(group, pods without a node, why), of that game."""


@dataclass
class _Board:
    free: list[dict[str, int]]
    ports: list[frozenset[tuple[str, int]]]
    standing: Standing
    own: list[Counter[int]]
    """Pods of each group on each node."""


class _Game:
    """The groups, the nodes that are open to them, and how pods are placed."""

    def __init__(self, groups: Sequence[PodGroup], room: Room, rules: TopologyRules) -> None:
        self.groups = groups
        self.room = room
        self.rules = rules
        self.requests = [_drop_zeros(group.requests) for group in groups]
        self.ports = [list_ports(group.spec) for group in groups]
        self.open = [find_open_nodes(group, room) for group in groups]

    def start(self) -> _Board:
        nodes = self.room.nodes
        return _Board(
            [dict(node.free) for node in nodes],
            [node.ports for node in nodes],
            self.rules.start(),
            [Counter() for _ in nodes],
        )

    def takes(self, group: int, node: int, board: _Board) -> bool:
        free = board.free[node]
        for resource, amount in self.requests[group].items():
            if free.get(resource, 0) < amount:
                return False
        if self.ports[group] & board.ports[node]:
            return False
        return self.rules.are_idle or self.rules.admit(group, node, board.standing)

    def place(self, group: int, node: int, board: _Board) -> None:
        free = board.free[node]
        for resource, amount in self.requests[group].items():
            free[resource] -= amount
        board.ports[node] |= self.ports[group]
        board.own[node][group] += 1
        if not self.rules.are_idle:
            self.rules.place(group, node, board.standing)

    def take_back(self, group: int, node: int, board: _Board) -> None:
        free = board.free[node]
        for resource, amount in self.requests[group].items():
            free[resource] += amount
        board.ports[node] -= self.ports[group]
        board.own[node][group] -= 1
        if not self.rules.are_idle:
            self.rules.place(group, node, board.standing, -1)

    def score(self, group: int, node: int, board: _Board) -> float:
        """Return how the scheduler likes a node: least allocated, balanced, few pods of its own kind."""
        total, free, wanted = self.room.nodes[node].total, board.free[node], self.requests[group]
        shares = [(total[name] - free[name] + wanted.get(name, 0)) / total[name] for name in _SCORED if total.get(name)]
        least = 1 - sum(shares) / len(shares) if shares else 0.0
        balanced = 1 - abs(shares[0] - shares[-1]) / 2 if shares else 0.0
        return least + balanced - _SPREAD_WEIGHT * board.own[node][group] / self.groups[group].count


def judge_fit(groups: Sequence[PodGroup], room: Room, namespace: str, chance: Chance) -> Fit:
    """Return whether all pods of `groups` find nodes."""
    game = _Game(groups, room, TopologyRules(groups, room, namespace))
    # One pod more than there is room for says all that a million more would.
    tried = [min(group.count, _count_most(game, number) + 1) for number, group in enumerate(groups)]
    order = [number for number, count in enumerate(tried) for _ in range(count)]
    is_hopeless = _is_hopeless(game)
    games = 1 if is_hopeless else _count_games(game)
    won = 0
    best: tuple[Counter[int], _Board] | None = None
    for _ in range(games):
        board = game.start()
        waiting = _play(game, order, board, chance)
        won += not waiting
        if waiting and (best is None or waiting.total() < best[0].total()):
            best = (waiting, board)
        chance.shuffle(order)
    if best is None:
        return Fit(YES, won, games)
    waiting, board = best
    told = tuple(
        (
            groups[number].name,
            groups[number].count - tried[number] + count,
            describe_refusals(groups[number], room, board.free),
        )
        for number, count in sorted(waiting.items())
    )
    return Fit(MAYBE if won or (not is_hopeless and _can_be_placed(game)) else NO, won, games, told)


def _count_games(game: _Game) -> int:
    looks = sum(group.count * len(nodes) for group, nodes in zip(game.groups, game.open, strict=True))
    return max(_LEAST_GAMES, min(_GAMES, _TRIES // max(looks, 1)))


def _play(game: _Game, order: Sequence[int], board: _Board, chance: Chance) -> Counter[int]:
    """Place pods in an order and return how many of each group find no node."""
    waiting: Counter[int] = Counter()
    for group in order:
        if waiting[group] and game.rules.are_idle:
            waiting[group] += 1  # an equal pod has found no node before, and nothing gets free
            continue
        nodes = [node for node in game.open[group] if game.takes(group, node, board)]
        if not nodes:
            waiting[group] += 1
            continue
        node = max(nodes, key=lambda each: (game.score(group, each, board), chance.random()))
        game.place(group, node, board)
    return +waiting


def _is_hopeless(game: _Game) -> bool:
    """Say whether a group would not fit if it were alone, or all nodes together have too little, whatever the rules."""
    return _lack_in_sum(game) or any(_count_most(game, each) < group.count for each, group in enumerate(game.groups))


def _count_most(game: _Game, group: int) -> int:
    """Return how many pods of a group would fit if there were no other group."""
    wanted = game.requests[group]
    free = [game.room.nodes[node].free for node in game.open[group]]
    return sum(min(max(0, each.get(name, 0)) // amount for name, amount in wanted.items()) for each in free)


def _lack_in_sum(game: _Game) -> bool:
    """Say whether all nodes together have less of a resource than all pods need."""
    needed: Counter[str] = Counter()
    for number, group in enumerate(game.groups):
        for resource, amount in game.requests[number].items():
            needed[resource] += amount * group.count
    usable = [game.room.nodes[node].free for node in {node for nodes in game.open for node in nodes}]
    return any(amount > sum(max(0, free.get(name, 0)) for free in usable) for name, amount in needed.items())


def _can_be_placed(game: _Game) -> bool:
    """Say whether any placement is found; also where the search is given up, since that proves nothing."""
    order = sorted(range(len(game.groups)), key=lambda number: (len(game.open[number]), -_weigh(game, number)))
    pods = [number for number in order for _ in range(game.groups[number].count)]
    budget = [_SEARCH]
    return len(pods) > _SEARCH_PODS or _search(game, pods, 0, -1, game.start(), budget) or budget[0] <= 0


def _search(game: _Game, pods: Sequence[int], index: int, last: int, board: _Board, budget: list[int]) -> bool:
    """Place the pods from `index` on, in every way; equal pods take nodes in one order only."""
    if index == len(pods):
        return True
    group = pods[index]
    is_same = index > 0 and pods[index - 1] == group
    tried: set[tuple[object, ...]] = set()
    for node in game.open[group]:
        if (is_same and node < last) or not game.takes(group, node, board):
            continue
        look = _look_of(game, node, board)
        if look in tried:
            continue
        tried.add(look)
        budget[0] -= 1
        if budget[0] <= 0:
            return False
        game.place(group, node, board)
        if _search(game, pods, index + 1, node, board, budget):
            return True
        game.take_back(group, node, board)
    return False


def _look_of(game: _Game, node: int, board: _Board) -> tuple[object, ...]:
    """Return what makes two nodes the same for all pods that are still to be placed; with rules, none are."""
    if not game.rules.are_idle:
        return (node,)
    is_open = tuple(node in nodes for nodes in game.open)
    return (tuple(sorted(board.free[node].items())), board.ports[node], is_open)


def _weigh(game: _Game, group: int) -> float:
    """Return how large a pod is: the largest share that it takes of the nodes open to it."""
    totals: Counter[str] = Counter()
    for node in game.open[group]:
        totals.update(game.room.nodes[node].total)
    return max(
        (amount / totals[name] for name, amount in game.requests[group].items() if totals[name]), default=math.inf
    )


def _drop_zeros(amounts: Amounts) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount > 0}
