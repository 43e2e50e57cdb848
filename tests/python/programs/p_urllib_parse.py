from urllib.parse import parse_qs, quote, unquote, urlencode, urljoin, urlsplit

u = urlsplit("https://user@example.org:8080/a/b?x=1&y=2&x=3#frag")
print(u.hostname, u.port, u.path, parse_qs(u.query), u.fragment)
print(urlencode({"q": "a b&c", "n": 1}), quote("ü/ä"), unquote("%C3%BC"), urljoin("https://e.org/a/b", "../c"))
