import array
import struct

packed = struct.pack("<IhB4s", 1, -2, 255, b"abcd")
print(packed.hex(), struct.unpack("<IhB4s", packed), struct.calcsize("<IhB4s"))
a = array.array("d", [1.5, 2.5])
a.extend([3.5])
print(a, a.itemsize, sum(a), memoryview(b"abcdef")[1:3].tobytes(), bytearray(b"ab") + b"c")
