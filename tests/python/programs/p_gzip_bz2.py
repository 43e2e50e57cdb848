import bz2
import gzip
import zlib

data = b"abc" * 1000
for c in (gzip, bz2, zlib):
    packed = c.compress(data)
    print(c.__name__, len(packed) < 100, c.decompress(packed) == data)
with gzip.open("x.gz", "wt") as f:
    f.write("line\n" * 3)
with gzip.open("x.gz", "rt") as f:
    print(sum(1 for _ in f), zlib.crc32(b"kiso"))
