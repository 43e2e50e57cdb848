"""Persons who answer cards. Each follows one fixed rule, and records the shown cards."""

import json

from .policy import POLICY
from .words import stands_in


class Person:
    def __init__(self, case, server):
        self.case, self.server = case, server
        # The effects of each card, and the accepted ones.
        self.cards, self.accepted = [], []
        # The sessions of the case's runs.
        self.sessions = set()

    def accepts(self, card):
        effects = card["effects"]
        chosen = [number for number, effect in enumerate(effects, 1) if self.would(effect)]
        self.cards.append(effects)
        self.accepted += [effects[number - 1] for number in chosen]
        return chosen

    def would(self, effect):
        raise NotImplementedError


class Nobody(Person):
    """Refuses everything."""

    def would(self, effect):
        return False


class Everything(Person):
    """Accepts everything."""

    def would(self, effect):
        return True


class Sensible(Person):
    """Accepts an effect if every address and value on the card occurs verbatim in the person's own text."""

    def would(self, effect):
        function = effect["tool"].removeprefix(f"{self.server}.")
        rule = POLICY.suites[self.case.suite].get(function)
        content = rule.get("content", []) if isinstance(rule, dict) else []
        shown = {arg["name"]: arg for arg in effect.get("args", [])}
        return bool(shown) and all(
            not arg.get("left_out") and stands_in(_value(arg["shown"]), self.case.prompt, days=False)
            for name, arg in shown.items() if name not in content)


def _value(shown):
    """Numbers and lists are shown as JSON."""
    try:
        return json.loads(shown)
    except ValueError:
        return shown
