import re

log = """2024-01-05 12:00:01 ERROR disk full on /dev/sda1
2024-01-05 12:00:02 INFO ok
2024-02-10 23:59:59 WARN slow request 1532ms"""
pattern = re.compile(r"(?P<day>\d{4}-\d\d-\d\d) (?P<time>[\d:]+) (?P<level>[A-Z]+) (?P<text>.*)")
for m in pattern.finditer(log):
    print(m["level"], m["day"], m["text"])
print(re.sub(r"(\d+)ms", lambda m: f"{int(m[1]) / 1000:.3f}s", log.splitlines()[-1]))
print(re.findall(r"\b\w{5}\b", log))
