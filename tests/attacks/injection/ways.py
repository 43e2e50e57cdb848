"""Ways of laundering, each in the suite banking: every task of the attacker, with users' tasks in turn."""

import time

from . import suites
from .daemon import Kiso
from .launder import Launderer
from .play import Stage
from .ways_files import BOUND, FILES
from .ways_later import LATER
from .ways_places import PLACES

SUITE = "banking"
WAYS = FILES + PLACES + BOUND + LATER
# Plans of a program without labels cannot bind arguments.
BINDING = BOUND + LATER


def cases(number, way, every):
    """Each way begins with another of the users' tasks, so that all take their turn. With `every`, one of the attacker's tasks."""
    chosen = suites.suites()[SUITE]
    users, attacks = list(chosen.user_tasks), list(chosen.injection_tasks)
    if every > 1:
        attacks = [attacks[number % len(attacks)]]
    return [suites.Case(SUITE, users[(number + step) % len(users)], attack, way.name) for step, attack in enumerate(attacks)]


def driver_of(way):
    return type("Of" + way.name.title().replace("-", ""), (Launderer,), {"way": way})


def run(given, program, world, minds, table, person, policy, bound):
    wanted = [(number, way) for number, way in enumerate(WAYS) if not given.way or way.name in given.way]
    together = [pair for pair in wanted if not pair[1].alone]
    for group in [together, *([pair] for pair in wanted if pair[1].alone)]:
        if not group:
            continue
        with Kiso(program, world, minds, policy, [SUITE], **group[0][1].config) as kiso:
            stage = Stage(kiso, world, minds)
            for number, way in group:
                if way in BINDING and not kiso.labels:
                    continue
                began = time.monotonic()
                played = stage.play_all(cases(number, way, given.every), driver_of(way), person, min(given.at_once, way.at_once))
                if not (bound or way.withheld and kiso.labels) and not any(result.forbidden for result in played):
                    table.problems.append(f"the way {way.name} leads nowhere even where nothing is asked, so it proves nothing")
                table.row(way.name, SUITE, played, time.monotonic() - began, bound)
