def describe(x):
    match x:
        case {"type": "circle", "r": r}:
            return f"circle {r}"
        case [first, *rest]:
            return f"list of {first} and {len(rest)} more"
        case int(n) if n < 0:
            return "negative"
        case str() | bytes():
            return "text"
        case _:
            return "other"


for x in ({"type": "circle", "r": 2}, [1, 2, 3], -4, "s", 3.5, {"type": "square"}):
    print(describe(x))
print(n := 10, [y := 1, y + 1], f"{n=} {n:>5} {'nested'!r:^10}")
