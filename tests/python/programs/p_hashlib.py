import base64
import hashlib
import hmac
import secrets
import uuid

print(hashlib.sha256(b"kiso").hexdigest(), hashlib.md5(b"kiso").hexdigest())
print(hashlib.blake2b(b"x", digest_size=8).hexdigest(), hashlib.sha3_256(b"").hexdigest()[:16])
print(hmac.new(b"key", b"msg", "sha256").hexdigest(), base64.b64encode(bytes(range(6))), base64.b32encode(b"hi"))
print(uuid.uuid5(uuid.NAMESPACE_DNS, "example.org"), len(secrets.token_hex(8)), hmac.compare_digest("a", "a"))
print(bytes.fromhex("00ff10").hex(":"), int.from_bytes(b"\x01\x00", "big"), (1000).to_bytes(2, "little"))
