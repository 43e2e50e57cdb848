import io
import zipfile

with zipfile.ZipFile("a.zip", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("one.txt", "1" * 1000)
    z.writestr("dir/two.txt", "zwei ü")
with zipfile.ZipFile("a.zip") as z:
    for info in z.infolist():
        print(info.filename, info.file_size, info.compress_size < info.file_size)
    print(z.read("dir/two.txt").decode())
    print(z.testzip())
print(zipfile.is_zipfile(io.BytesIO(b"nothing")))
