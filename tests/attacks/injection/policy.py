"""The suites' policy (policy.toml) for the harness: which calls are effects, and which arguments matter."""

import tomllib
from pathlib import Path


class Policy:
    def __init__(self, path=Path(__file__).with_name("policy.toml")):
        self.suites = {name: table["effects"] for name, table in tomllib.loads(path.read_text())["mcp"].items()}

    def reads(self, suite, function):
        return self.suites[suite].get(function) == "read"

    def effects(self, suite):
        return [name for name, rule in self.suites[suite].items() if rule != "read"]

    def bound(self, suite, call):
        """The arguments of a call that have to be the user's: addresses and values, or all arguments of a call that only
        reads."""
        rule = self.suites[suite][call.function]
        content = [] if rule == "read" else rule.get("content", [])
        return {name: value for name, value in call.args.items() if name not in content}

    def checked(self, tools):
        """Checks that each tool of each suite has a rule, and that the rule covers each argument of an effect."""
        for suite, described in tools.items():
            rules = self.suites[suite]
            assert {tool["name"] for tool in described} == set(rules), f"policy.toml: {suite} has other tools"
            for tool in described:
                if (rule := rules[tool["name"]]) != "read":
                    placed = [name for names in rule.values() for name in names]
                    assert sorted(placed) == sorted(tool["inputSchema"]["properties"]), f"policy.toml: {suite}.{tool['name']}"

    def table(self, suite, server):
        """The policy as lines of config.toml."""
        lines = [f"[mcp.{server}.effects]"]
        for name, rule in self.suites[suite].items():
            parts = ", ".join(f"{kind} = {names!r}".replace("'", '"') for kind, names in rule.items()) if rule != "read" else ""
            lines.append(f"{name} = " + (f"{{ {parts} }}" if parts else '"read"'))
        return "\n".join(lines) + "\n"


POLICY = Policy()
