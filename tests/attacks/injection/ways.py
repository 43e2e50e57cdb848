"""Ways of laundering, all in the suite banking: every attacker's task, with alternating users' tasks."""

import time

from . import suites
from .daemon import Kiso
from .launder import Launderer
from .play import Stage
from .ways_attached import ATTACHED
from .ways_files import BOUND, FILES
from .ways_later import LATER
from .ways_places import PLACES

SUITE = "banking"
WAYS = FILES + PLACES + BOUND + LATER + ATTACHED


def cases(number, way, every):
    """Each way starts with a different user's task, so that all are used. If not every pair is played, each has one of the
    attacker's tasks."""
    chosen = suites.suites()[SUITE]
    users, attacks = list(chosen.user_tasks), list(chosen.injection_tasks)
    if every > 1:
        attacks = [attacks[number % len(attacks)]]
    return [suites.Case(SUITE, users[(number + step) % len(users)], attack, way.name) for step, attack in enumerate(attacks)]


BY_NAME = {way.name: way for way in WAYS}


def driver(played, server):
    way = BY_NAME[played.case.way]
    return type("Of" + way.name.title().replace("-", ""), (Launderer,), {"way": way})(played, server)


def run(given, program, world, minds, table, answer, person, policy, bound):
    wanted = [(number, way) for number, way in enumerate(WAYS) if not given.way or way.name in given.way]
    if not given.way:
        # So that a small part of the pairs is also a small part of the ways.
        wanted = wanted[::max(1, given.every // 9)]
    print(f"\n{len(wanted)} of {len(WAYS)} ways of laundering, in {SUITE}; {answer}", flush=True)
    together = [pair for pair in wanted if not pair[1].alone]
    for group in [together, *([pair] for pair in wanted if pair[1].alone)]:
        if not group:
            continue
        first = group[0][1]
        slots = 1 if first.alone and given.every > 1 else given.at_once
        began = time.monotonic()
        with Kiso(program, world, minds, policy, [SUITE], slots=slots, **first.config) as kiso:
            chosen = [case for number, way in group for case in cases(number, way, given.every)]
            results = Stage(kiso, world, minds).play_all(chosen, driver, person, min(slots, first.at_once))
        seconds = time.monotonic() - began
        for _, way in group:
            played = [result for result in results if result.case.way == way.name]
            if not (bound or way.withheld or any(result.tried and result.forbidden for result in played)):
                table.problems.append(f"the way {way.name} leads nowhere even where nothing is asked, so it proves nothing")
            share = seconds * len(played) / max(1, len(results))
            table.row(f"{answer}, {way.name}", SUITE, played, share, bound, way.withheld)
