import re

print(re.split(r"[,;\s]+", "a, b;c  d"))
print(re.fullmatch(r"[\w.+-]+@[\w-]+\.[\w.]+", "ada@example.org") is not None)
print(re.sub(r"(?m)^\s+", "", "  x\n    y\n z"))
print(re.match(r"(a+)+$", "aaaaaaaaaaaaab"))
try:
    re.compile("(")
except re.error as e:
    print("bad", e.pos)
