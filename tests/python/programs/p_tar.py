import io
import tarfile

with tarfile.open("a.tar.gz", "w:gz") as t:
    data = b"hello"
    info = tarfile.TarInfo("dir/hello.txt")
    info.size = len(data)
    t.addfile(info, io.BytesIO(data))
with tarfile.open("a.tar.gz") as t:
    print(t.getnames(), t.extractfile("dir/hello.txt").read())
