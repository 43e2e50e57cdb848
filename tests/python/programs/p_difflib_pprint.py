import difflib
import pprint

a, b = "one\ntwo\nthree\n".splitlines(True), "one\nTWO\nthree\nfour\n".splitlines(True)
print("".join(difflib.unified_diff(a, b, "a", "b")), end="")
print(difflib.get_close_matches("appel", ["ape", "apple", "peach"]), round(difflib.SequenceMatcher(None, "abcd", "bcde").ratio(), 3))
pprint.pprint({"k" * 20: list(range(15)), "nested": {"deep": ["x" * 30, "y" * 30]}}, width=60)
