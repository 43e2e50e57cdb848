# The part of `mmap` that reads, as bytes: a component's memory holds no files.
import os

ACCESS_READ = 1


class mmap(bytes):
    def __new__(cls, number, size, access=ACCESS_READ, offset=0):
        if access != ACCESS_READ:
            raise OSError("files can only be read so here")
        return super().__new__(cls, os.pread(number, size or os.fstat(number).st_size - offset, offset))

    def close(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass
