import unicodedata

s = "Straße Ærø 日本語 e\u0301 👩‍👩‍👧"
print(len(s), s.upper(), s.casefold())
print(unicodedata.normalize("NFC", "e\u0301") == "é", unicodedata.name("ß"))
print([c for c in "aäbßc" if not c.isascii()], "日本".encode("utf-8"), "é".encode("latin-1"))
try:
    b"\xff\xfe".decode("utf-8")
except UnicodeDecodeError as e:
    print(e.reason)
print("x\u202ey".encode("unicode_escape"), sorted(["ä", "a", "z"]))
