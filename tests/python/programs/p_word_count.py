import collections
import re

text = """It was the best of times, it was the worst of times, it was the age of wisdom..."""
open("book.txt", "w").write(text)
words = re.findall(r"[a-z']+", open("book.txt").read().lower())
for word, n in sorted(collections.Counter(words).items(), key=lambda x: (-x[1], x[0]))[:5]:
    print(f"{n:3} {word}")
