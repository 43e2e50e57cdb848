people = [("Ada", 36), ("Bob", 25), ("Cyd", 36), ("Dan", 19)]
people.sort(key=lambda p: (-p[1], p[0]))
print(people)
from operator import attrgetter, itemgetter

print(sorted(people, key=itemgetter(0), reverse=True), min(people, key=itemgetter(1)))
print(sorted([3, 1, 2], key=lambda x: -x), sorted({"b": 1, "a": 2}.items()), list(reversed([1, 2])))
