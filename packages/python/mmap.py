# The part of `mmap` that reads, as bytes: a component's memory holds no files.
import os

ACCESS_READ = 1


class mmap(bytes):
    def __new__(cls, number, size, access=ACCESS_READ, offset=0):
        if access != ACCESS_READ:
            raise OSError("files can only be read so here")
        size = size or os.fstat(number).st_size - offset
        data = os.pread(number, size, offset)
        while len(data) < size:
            # A large file may come in several parts.
            part = os.pread(number, size - len(data), offset + len(data))
            if not part:
                break
            data += part
        return super().__new__(cls, data)

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
