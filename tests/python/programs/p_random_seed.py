import random

r = random.Random(42)
print([r.randint(1, 100) for _ in range(5)], r.choice("abcdef"), round(r.random(), 12))
items = list(range(8))
r.shuffle(items)
print(items, r.sample(range(100), 4), round(r.gauss(0, 1), 9))
print(0 <= random.random() < 1, len({random.getrandbits(64) for _ in range(100)}) == 100)
