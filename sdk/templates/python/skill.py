"""Greets by name."""

import json

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import log
from wit_world.imports.kiso_skill_types import Call, Failure, Reply


class Skill(exports.Skill):
    def run(self, call: Call) -> Reply:
        """`call` has `tool`, `args` (JSON, as [kiso.skill.args] in kiso.toml declares them), `session` and `locale`.

        Returns a reply. What is raised as `Err(Failure(…))` is shown to the user; any other exception ends the call.
        """
        args = json.loads(call.args)
        log.write("info", f"greeting in session {call.session}")
        name = args["name"].strip()
        if not name:
            raise Err(Failure("bad-args", "the name is blank; say whom to greet", retryable=False))
        greeting = f"Hello, {name}!"
        return reply(greeting.upper() if args["loud"] else greeting)


def reply(text: str) -> Reply:
    """A reply with its text as data. Its files are paths under /work: `File("/work/out.csv", None, "Result")`."""
    return Reply(text=text, data=json.dumps({"greeting": text}), files=[])
