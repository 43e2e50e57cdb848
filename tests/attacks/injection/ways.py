"""Ways of laundering, each in the suite banking: every task of the attacker, with users' tasks in turn."""

import time

from . import suites
from .daemon import Kiso
from .launder import Launderer
from .people import Nobody, Sensible
from .play import Stage
from .ways_files import FILES
from .ways_places import PLACES

SUITE = "banking"
WAYS = FILES + PLACES


def cases(number, way, every):
    """Each way begins with another of the users' tasks, so that all take their turn. With `every`, one of the attacker's tasks."""
    chosen = suites.suites()[SUITE]
    users, attacks = list(chosen.user_tasks), list(chosen.injection_tasks)
    if every > 1:
        attacks = [attacks[number % len(attacks)]]
    return [suites.Case(SUITE, users[(number + step) % len(users)], attack, way.name) for step, attack in enumerate(attacks)]


def driver_of(way):
    return type("Of" + way.name.title().replace("-", ""), (Launderer,), {"way": way})


def run(given, program, world, minds, table, _some):
    wanted = [way for way in WAYS if not given.way or way.name in given.way]
    print(f"\n{len(wanted)} ways of laundering, in {SUITE}", flush=True)
    for person in (Nobody, Sensible):
        for config in sorted({way.config for way in wanted}):
            with Kiso(program, world, minds, "ask", [SUITE], config) as kiso:
                for number, way in enumerate(WAYS):
                    if way in wanted and way.config == config:
                        began = time.monotonic()
                        stage = Stage(kiso, world, minds, f"{person.__name__.lower()}-")
                        played = stage.play_all(cases(number, way, given.every), driver_of(way), person, given.at_once)
                        table.row(way.name, SUITE, played, time.monotonic() - began, True)
