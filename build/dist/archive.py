"""Archives that depend on their content alone: sorted, owned by root, with one time for everything."""

import gzip
import hashlib
import io
import lzma
import tarfile
import zipfile
import time


class Tree:
    """Files by path, with their modes; the directories above them come by themselves."""

    def __init__(self):
        self.files = {}

    def add(self, path, data, mode=0o644):
        self.files[path] = (data.encode() if isinstance(data, str) else data, mode)

    def read(self, path):
        return self.files[path][0]

    def below(self, prefix):
        """The same files below a directory."""
        tree = Tree()
        tree.files = {f"{prefix}/{path}": file for path, file in self.files.items()}
        return tree

    def update(self, other):
        self.files.update(other.files)

    def directories(self):
        found = set()
        for path in self.files:
            parts = path.split("/")[:-1]
            found.update("/".join(parts[: n + 1]) for n in range(len(parts)))
        return found

    def sums(self):
        """As `sha256sum` writes it."""
        return "".join(f"{hashlib.sha256(self.read(path)).hexdigest()}  {path}\n" for path in sorted(self.files))

    def tar(self, epoch, prefix="", owners=None):
        """A tar archive; `owners` maps a path to its owner's number."""
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            entries = [(path, None, 0o755) for path in self.directories()]
            entries += [(path, data, mode) for path, (data, mode) in self.files.items()]
            for path, data, mode in sorted(entries, key=lambda entry: entry[0]):
                info = tarfile.TarInfo(prefix + path)
                info.mtime, info.mode = epoch, mode
                info.uid = info.gid = (owners or {}).get(path, 0)
                if data is None:
                    info.type = tarfile.DIRTYPE
                    tar.addfile(info)
                else:
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        return out.getvalue()


def gz(data):
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=out, compresslevel=9, mtime=0) as file:
        file.write(data)
    return out.getvalue()


def xz(data):
    return lzma.compress(data, format=lzma.FORMAT_XZ, check=lzma.CHECK_CRC64, preset=6)


def ar(members, epoch):
    """The archive around a Debian package."""
    out = bytearray(b"!<arch>\n")
    for name, data in members:
        out += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode()
        out += data + b"\n" * (len(data) % 2)
    return bytes(out)


def zip_(files, epoch):
    """A zip archive of (path, data, mode), in this order."""
    out = io.BytesIO()
    stamp = time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(out, "w") as archive:
        for path, data, mode in files:
            info = zipfile.ZipInfo(path, stamp)
            info.create_system = 3
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, data, compresslevel=9)
    return out.getvalue()
