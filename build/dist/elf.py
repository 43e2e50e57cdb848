"""Requirements of a program on the system that it runs on."""

import re
import struct


class Elf:
    """The headers of a 64-bit little-endian ELF file."""

    MACHINES = {62: "x86_64", 183: "aarch64"}

    def __init__(self, data):
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("this is not a 64-bit little-endian ELF file")
        self.data = data
        self.machine = self.MACHINES[struct.unpack_from("<H", data, 18)[0]]
        offset, size, count = (
            struct.unpack_from("<Q", data, 32)[0],
            struct.unpack_from("<H", data, 54)[0],
            struct.unpack_from("<H", data, 56)[0],
        )
        self.segments = []
        for n in range(count):
            kind, flags, start, address, _, in_file, in_memory, align = struct.unpack_from("<IIQQQQQQ", data, offset + n * size)
            self.segments.append(
                {"type": kind, "flags": flags, "offset": start, "address": address, "file": in_file, "memory": in_memory, "align": align}
            )

    def loads(self):
        return [segment for segment in self.segments if segment["type"] == 1]

    def interpreter(self):
        for segment in self.segments:
            if segment["type"] == 3:
                return self.data[segment["offset"] : segment["offset"] + segment["file"]].rstrip(b"\0").decode()
        return None

    def at(self, address):
        """The place in the file of an address."""
        for segment in self.loads():
            if segment["address"] <= address < segment["address"] + segment["file"]:
                return address - segment["address"] + segment["offset"]
        raise ValueError(f"address {address:#x} is not in the file")

    def dynamic(self):
        for segment in self.segments:
            if segment["type"] == 2:
                entries = struct.iter_unpack("<QQ", self.data[segment["offset"] : segment["offset"] + segment["file"]])
                return [(tag, value) for tag, value in entries if tag]
        return []

    def needed(self):
        """The libraries that it is linked with."""
        dynamic = self.dynamic()
        strings = self.at(dict(dynamic)[5])
        names = (strings + value for tag, value in dynamic if tag == 1)
        return sorted(self.data[start : self.data.index(b"\0", start)].decode() for start in names)

    def glibc(self):
        """The oldest version of glibc that it runs with, such as (2, 36)."""
        dynamic = dict(self.dynamic())
        strings = self.at(dynamic[5])
        table = self.data[strings : strings + dynamic[10]]
        return max(tuple(int(part) for part in m.split(b".")) for m in re.findall(rb"GLIBC_(\d+\.\d+)", table))
