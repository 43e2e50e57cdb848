from enum import Enum, Flag, auto
from typing import NamedTuple, Optional, Protocol, TypedDict


class Color(Enum):
    RED = 1
    GREEN = auto()


class Perm(Flag):
    R = auto()
    W = auto()


class User(TypedDict):
    name: str


class Pair(NamedTuple):
    a: int
    b: Optional[str] = None


class Sized(Protocol):
    def __len__(self) -> int: ...


u: User = {"name": "Ada"}
print(Color.RED.name, Color(2), [c.value for c in Color], (Perm.R | Perm.W).value, Perm.R in (Perm.R | Perm.W))
print(u, Pair(1), Pair.__annotations__)
