matrix = [[1, 2, 3], [4, 5, 6]]
print([[row[i] for row in matrix] for i in range(3)], {x: x**2 for x in range(4)}, {c for c in "hello"} == set("ehlo"))
print(list(zip(*matrix)), sum(x for row in matrix for x in row if x % 2), any(x > 5 for row in matrix for x in row))
a, *b, c = range(5)
print(a, b, c, [*b, *"xy"], {**{"k": 1}, "l": 2}, "abcdef"[::-2], sorted("bca", reverse=True))
print(list(map(str.upper, "ab")), list(filter(None, [0, 1, "", "x"])), list(enumerate("ab", 1)), max("aB", key=str.lower))
