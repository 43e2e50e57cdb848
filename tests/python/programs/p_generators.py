from itertools import accumulate, chain, groupby, islice


def primes():
    found = []
    n = 2
    while True:
        if all(n % p for p in found if p * p <= n):
            found.append(n)
            yield n
        n += 1


print(list(islice(primes(), 15)))
print(list(accumulate(range(1, 8))), list(chain("ab", [1, 2])))
for key, group in groupby(sorted(["apple", "bob", "axe", "cat", "bee"]), key=lambda w: w[0]):
    print(key, list(group))


def talker():
    total = 0
    while True:
        got = yield total
        if got is None:
            return total
        total += got


g = talker()
next(g)
print(g.send(3), g.send(4))
try:
    g.send(None)
except StopIteration as e:
    print("returned", e.value)
