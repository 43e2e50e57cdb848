import copy
import pickle
import shelve


class Node:
    def __init__(self, v, kids=()):
        self.v, self.kids = v, list(kids)

    def __eq__(self, other):
        return self.v == other.v and self.kids == other.kids


tree = Node(1, [Node(2), Node(3)])
again = pickle.loads(pickle.dumps(tree))
print(again == tree, again is tree, copy.deepcopy(tree) == tree)
with open("p.pkl", "wb") as f:
    pickle.dump({"a": [1, 2]}, f)
with open("p.pkl", "rb") as f:
    print(pickle.load(f))
