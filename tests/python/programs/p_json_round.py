import json

data = {"name": "Ada", "tags": ["a", "b"], "nested": {"pi": 3.14159, "none": None, "ok": True}, "ü": "ñ"}
text = json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False)
print(text)
assert json.loads(text) == data
try:
    json.loads('{"a": 1,}')
except json.JSONDecodeError as e:
    print("error", e.lineno, e.pos)
