from abc import ABC, abstractmethod


class Shape(ABC):
    @abstractmethod
    def area(self): ...

    def __lt__(self, other):
        return self.area() < other.area()

    def __repr__(self):
        return f"{type(self).__name__}({self.area():g})"


class Square(Shape):
    def __init__(self, side):
        self.side = side

    def area(self):
        return self.side**2


class Circle(Shape):
    def __init__(self, r):
        self.r = r

    @property
    def diameter(self):
        return 2 * self.r

    def area(self):
        return 3.14 * self.r**2


print(sorted([Square(3), Circle(1), Square(1)]), Circle(2).diameter)
try:
    Shape()
except TypeError as e:
    print("abstract" in str(e))
