import json
import pathlib

p = pathlib.Path("events.jsonl")
p.write_text("\n".join(json.dumps({"n": n, "kind": "even" if n % 2 == 0 else "odd"}) for n in range(10)))
kinds = {}
for line in p.read_text().splitlines():
    event = json.loads(line)
    kinds.setdefault(event["kind"], []).append(event["n"])
print(kinds)
