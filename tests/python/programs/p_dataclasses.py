from dataclasses import asdict, dataclass, field, replace


@dataclass(order=True)
class Item:
    price: float
    name: str = field(compare=False)
    tags: list = field(default_factory=list, compare=False)


items = [Item(3.5, "tea"), Item(2.0, "bun", ["sweet"]), Item(9.99, "cake")]
print(sorted(items))
print(max(items), asdict(items[1]), replace(items[0], price=4.0))


@dataclass(frozen=True)
class Point:
    x: int
    y: int


try:
    Point(1, 2).x = 3
except Exception as e:
    print(type(e).__name__, hash(Point(1, 2)) == hash(Point(1, 2)))
