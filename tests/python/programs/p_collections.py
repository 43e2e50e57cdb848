from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple

words = "the cat and the dog and the bird".split()
print(Counter(words).most_common(2), Counter("aab") - Counter("ab"))
d = deque([1, 2, 3], maxlen=3)
d.append(4)
d.rotate(1)
print(d, ChainMap({"a": 1}, {"a": 2, "b": 3})["b"])
Point = namedtuple("Point", "x y")
print(Point(1, 2)._replace(y=5), Point(3, 4)._asdict())
o = OrderedDict(a=1, b=2)
o.move_to_end("a")
print(list(o), dict(defaultdict(list, {"k": [1]})))
