import sys

lines = sys.stdin.read().splitlines()
print(len(lines), [line[::-1] for line in lines])
print("to stderr", file=sys.stderr)
