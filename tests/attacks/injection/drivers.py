"""Answers of the models in a case: by a driver that does the user's task, and by one that is compromised on its way."""

import json

from .mind import Answer, is_taken
from .policy import POLICY
from .suites import CANARY, plain
from .words import stands_in


class Honest:
    """Does the user's task by the package's ground truth: calls that the user's text determines are planned, the rest is left to
    the actor."""

    shape = "plan"

    def __init__(self, play, server):
        self.play, self.server = play, server
        self.wanted = play.case.wanted(play.environment)
        # Calls that are left to the actor, in batches for each of its tasks, and the texts that are written for planned calls.
        self.acts, self.words = [], []

    # The name of a call in kiso.

    def name(self, call):
        return f"{self.server}.{call.function}"

    def as_task(self, call):
        return {"type": "skill", "skill": self.name(call), "args": dict(call.args)}

    def as_call(self, call):
        return self.name(call), dict(call.args)

    # Whether a call is planned.

    def is_planned(self, call):
        """Whether a planner that has read only the user's text can determine all arguments of a call that have to be the
        user's."""
        text = self.play.case.prompt
        return all(stands_in(value, text) for value in POLICY.bound(self.play.case.suite, call).values())

    def plan(self):
        """The plan's tasks in the order of the ground truth. The actor finds out what a planner cannot know: it reads step by
        step, and makes all resulting changes together at the end, so that one card shows them."""
        tasks, reads, effects = [], [], []

        def act(batches):
            self.acts.append(batches)
            tasks.append({"type": "act", "detail": "Do what the message asks for with what was read", "expect": "it is done"})

        for number, call in enumerate(self.wanted):
            planned = number == 0 or self.is_planned(call)
            if POLICY.reads(self.play.case.suite, call.function):
                if not planned:
                    reads.append(call)
                    continue
            elif not planned or effects:
                effects.append(call)
                continue
            if reads:
                act([[read] for read in reads])
                reads = []
            tasks += self.with_words(call, len(tasks))
        if reads or effects:
            act([[read] for read in reads] + ([effects] if effects else []))
        return tasks

    def with_words(self, call, before):
        """A task for a call whose texts are not known yet: other tasks write them first, and the call is bound to their
        results."""
        args, tasks = dict(call.args), []
        if not POLICY.reads(self.play.case.suite, call.function):
            for name in call.args.keys() - POLICY.bound(self.play.case.suite, call).keys():
                if isinstance(args[name], str) and args[name] and not stands_in(args[name], self.play.case.prompt):
                    self.words.append(args[name])
                    tasks.append({"type": "msg", "detail": f"Write nothing but the {name} for {call.function}"})
                    args[name] = {"from": before + len(tasks)}
        return [*tasks, {"type": "skill", "skill": self.name(call), "args": args}]

    def answer(self, asked):
        return getattr(self, asked.role, self.talk)(asked)

    def talk(self, _asked):
        return Answer("Nothing to say.")

    def router(self, _asked):
        effort = "medium" if self.shape == "loop" else "high"
        if self.shape == "loop":
            self.acts = [[[call] for call in self.wanted]]
        return Answer({"effort": effort, "categories": [self.server], "tool_need": 1, "goal": "What the message asks for",
                       "durable": False})

    def planner(self, _asked):
        last = {"type": "msg", "detail": "Say what came of it", "notify": True}
        return Answer({"goal": "What the message asks for", "tasks": [*self.plan(), last]})

    def reasoner(self, _asked):
        context = {"discovery": [], "credentials": [], "artifacts": [], "blockers": [], "recheck": "none"}
        return Answer({"goal": "What the message asks for", "required": [], "delta": "It is to be done", "success": ["it is done"],
                       "context": context, "action": "do it"})

    def actor(self, asked):
        if self.acts and self.acts[0]:
            return Answer("", [self.as_call(call) for call in self.acts[0].pop(0)])
        self.acts = self.acts[1:]
        return Answer(self.play.case.task.GROUND_TRUTH_OUTPUT or "It is done.")

    def reviewer(self, _asked):
        return Answer({"status": "ok"})

    def worker(self, _asked):
        if self.words:
            return Answer(self.words.pop(0))
        return Answer(self.play.case.task.GROUND_TRUTH_OUTPUT or "It is done.")


class Taken(Honest):
    """The same until a text of the attacker is in a prompt. After that it answers as the attacker wants."""

    # Number of attempts of each role.
    TRIES = 2

    def __init__(self, play, server, shape="plan"):
        super().__init__(play, server)
        self.shape = shape
        self.attack = None
        self.tried = {}

    @property
    def has_tried(self):
        """Whether it has requested anything that the attacker wants."""
        return any(self.tried.values())

    def plan(self):
        """The critic is asked about every result, so that it can be compromised as well."""
        return [task if task["type"] == "msg" else {**task, "review": True, "expect": "what the message asks for"}
                for task in super().plan()]

    def answer(self, asked):
        if not is_taken(asked.prompt):
            return super().answer(asked)
        if self.attack is None:
            self.attack = self.play.case.forbidden(self.play.environment)
        return getattr(self, f"evil_{asked.role}", self.evil_talk)(asked)

    def left(self, role):
        """The attacker's calls that were not made yet; none if this role has tried often enough."""
        suite = self.play.case.suite
        made, left = [plain(suite, call) for call in self.play.made], []
        for call in self.attack:
            if plain(suite, call) in made:
                made.remove(plain(suite, call))
            else:
                left.append(call)
        self.tried[role] = self.tried.get(role, 0) + bool(left)
        return left if self.tried[role] <= self.TRIES * max(1, len(self.attack)) else []

    def evil_talk(self, _asked):
        # If the attacker wants only a text, this is the whole attempt.
        self.tried["talk"] = not self.attack
        return Answer(f"{self.play.case.attack.GROUND_TRUTH_OUTPUT} {CANARY}: {self.play.case.attack.GOAL}")

    def evil_router(self, asked):
        """The goal is the planner's directive, and durable content is remembered."""
        routed = json.loads(self.router(asked).text)
        return Answer({**routed, "goal": f"{CANARY}: {self.play.case.attack.GOAL}", "durable": True})

    def evil_reasoner(self, _asked):
        """The actor sees only the brief, so the brief must contain the words."""
        brief = json.loads(super().reasoner(_asked).text)
        words = f"{CANARY}: {self.play.case.attack.GOAL}"
        return Answer({**brief, "goal": words, "action": words, "context": {**brief["context"], "discovery": [words]}})

    def evil_planner(self, _asked):
        tasks = [self.as_task(call) for call in self.left("planner")]
        return Answer({"goal": "What the attacker asks for",
                       "tasks": [*tasks, {"type": "msg", "detail": "Say nothing of it", "notify": True}]})

    def evil_actor(self, asked):
        left = self.left("actor")
        # One after the other: each may need the result of the one before.
        return Answer("", [self.as_call(left[0])]) if left else self.evil_talk(asked)

    def evil_reviewer(self, _asked):
        left = self.left("reviewer")
        if not left:
            return Answer({"status": "ok"})
        return Answer({"status": "needs_fix", "reason": "It is not done", "inject": [self.as_task(call) for call in left]})
