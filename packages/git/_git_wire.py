# Repositories at an address of HTTP: their references, fetching and pushing, by Git's protocol.
from _git_core import Failure, say
from _git_http import Server
from _git_receive import say_remote
from dulwich.objects import Commit

FLUSH, DELIMITER, END = b"0000", b"0001", b"0002"
# Commits that are named to a server as what is here already.
MOST_HAVES = 256


def packet(data):
    return b"%04x%b" % (len(data) + 4, data)


def read_packet(read):
    """The next packet; None at a flush, and the mark of a delimiter or an end as it is."""
    size = read(4)
    if len(size) < 4:
        raise Failure("the remote end hung up unexpectedly")
    try:
        length = int(size, 16)
    except ValueError:
        raise Failure(f"protocol error: bad line length character: {size.decode(errors='replace')}") from None
    if length < 4:
        return None if length == 0 else size
    data = read(length - 4)
    if len(data) < length - 4:
        raise Failure("the remote end hung up unexpectedly")
    if data.startswith(b"ERR "):
        raise Failure(f"remote error: {data[4:].decode(errors='replace').strip()}")
    return data


def packets(read):
    while (data := read_packet(read)) not in (None, END):
        yield data


class _Refs:
    """Of the references there, what is asked of those of a directory."""

    def __init__(self, remote):
        self._remote = remote

    def __getitem__(self, ref):
        if ref == b"HEAD" and self._remote.head_sha:
            return self._remote.head_sha
        return self._remote.listed[ref]

    def read_ref(self, ref):
        target = self._remote.head_target
        return b"ref: " + target if ref == b"HEAD" and target else self._remote.head_sha if ref == b"HEAD" else None


class HttpRemote:
    """A repository that a server has. It stands where dulwich's repository of a directory does, and for its objects, too."""

    is_http, bare = True, True

    def __init__(self, url, settings, service="git-upload-pack", prefixes=(b"HEAD", b"refs/")):
        self.server = Server(url, settings)
        self.service = service
        self.listed, self.peeled, self.head_sha, self.head_target = {}, {}, None, None
        self.refs, self.object_store = _Refs(self), self
        self._capabilities = {}
        self._version, self._prefixes = 0, prefixes
        self._discover()

    def _headers(self):
        return {"git-protocol": "version=2"} if self.service == "git-upload-pack" else {}

    def _discover(self):
        response = self.server.get(f"info/refs?service={self.service}", self._headers())
        kind = response.headers.get("content-type", "").split(";")[0]
        if kind != f"application/x-{self.service}-advertisement":
            response.close()
            raise Failure(f"{self.server.shown.rstrip('/')}/info/refs not valid: is this a git repository?")
        first = read_packet(response.read)
        if first and first.startswith(b"# service="):
            read_packet(response.read)
            first = read_packet(response.read)
        if first and first.strip() == b"version 2":
            self._version = 2
            for line in packets(response.read):
                name, _, value = line.strip().decode().partition("=")
                self._capabilities[name] = value
            response.close()
            if self._capabilities.get("object-format", "sha1") != "sha1":
                raise Failure("repositories with SHA-256 are not supported here")
            self._list()
            return
        while first is not None:
            self._take_line(first)
            first = read_packet(response.read)
        response.close()

    def _take_line(self, line):
        """A reference as the older protocol lists it, the first with what the server can do."""
        line, _, words = line.rstrip(b"\n").partition(b"\0")
        for word in words.decode(errors="replace").split():
            name, _, value = word.partition("=")
            if name == "symref" and value.startswith("HEAD:"):
                self.head_target = value[5:].encode()
            self._capabilities[name] = value
        sha, _, ref = line.partition(b" ")
        if ref == b"HEAD":
            self.head_sha = sha
        elif ref.endswith(b"^{}"):
            self.peeled[ref[:-3]] = sha
        elif ref.startswith(tuple(self._prefixes)):
            self.listed[ref] = sha

    def _list(self):
        words = [b"peel\n", b"symrefs\n", *(b"ref-prefix %b\n" % prefix for prefix in self._prefixes)]
        if "unborn" in self._capabilities.get("ls-refs", ""):
            words.append(b"unborn\n")
        response = self._command(b"ls-refs", words)
        for line in packets(response.read):
            sha, ref, *rest = line.rstrip(b"\n").split(b" ")
            for word in rest:
                name, _, value = word.partition(b":")
                if name == b"symref-target" and ref == b"HEAD":
                    self.head_target = value
                elif name == b"peeled":
                    self.peeled[ref] = value
            if sha == b"unborn":
                continue
            if ref == b"HEAD":
                self.head_sha = sha
            else:
                self.listed[ref] = sha
        response.close()

    def _command(self, name, words):
        body = packet(b"command=%b\n" % name) + packet(b"object-format=sha1\n") + DELIMITER
        return self._post(body + b"".join(map(packet, words)) + FLUSH)

    def _post(self, body):
        headers = {**self._headers(), "content-type": f"application/x-{self.service}-request"}
        return self.server.post(self.service, {**headers, "accept": f"application/x-{self.service}-result"}, body)

    def peel(self, ref, sha):
        """The object that a tag leads to."""
        return self.peeled.get(ref, sha)

    def get_config(self):
        return {}

    # Fetching.

    def fetch_into(self, git, wants, depth=None, filter=None, unshallow=False):
        """Fetches what the wanted objects need that is not here."""
        store = git.store
        wants = [sha for sha in sorted(wants) if depth or unshallow or sha not in store.object_store]
        if not wants:
            return
        shallow = sorted(store.get_shallow())
        words = [b"thin-pack", b"no-progress", b"include-tag", b"ofs-delta"] if self._version == 2 else []
        arguments = [b"shallow %b\n" % sha for sha in shallow]
        if unshallow:
            arguments.append(b"deepen 2147483647\n")
        elif depth:
            arguments.append(b"deepen %d\n" % depth)
        if filter:
            if self._version == 2 and "filter" in self._capabilities.get("fetch", "").split():
                arguments.append(b"filter %b\n" % filter.encode())
            else:
                say("warning: filtering not recognized by server, ignoring\n")
        haves = [b"have %b\n" % sha for sha in _haves(git)]
        if self._version == 2:
            lines = [word + b"\n" for word in words] + [b"want %b\n" % sha for sha in wants] + arguments + haves + [b"done\n"]
            response = self._command(b"fetch", lines)
            self._sections(response, store)
        else:
            response = self._fetch_older(wants, arguments, haves, bool(depth or unshallow), store)
        pack = _take_pack(store.object_store, _Band(response).read)
        if pack is not None and filter:
            # So Git knows that what the pack leads to may be missing.
            with open(pack._basename + ".promisor", "wb"):
                pass
        response.close()

    def fetch_objects(self, git, shas):
        """Fetches objects that were left out, and nothing that they need."""
        if self._version != 2:
            raise Failure("the server's protocol is older than what partial clones need")
        lines = [b"thin-pack\n", b"no-progress\n", b"ofs-delta\n", b"filter blob:none\n", *(b"want %b\n" % sha for sha in shas), b"done\n"]
        response = self._command(b"fetch", lines)
        self._sections(response, git.store)
        _take_pack(git.store.object_store, _Band(response).read)
        response.close()

    def _sections(self, response, store):
        """Reads up to where the pack begins."""
        while (line := read_packet(response.read)) is not None:
            section = line.strip()
            if section == b"packfile":
                return
            lines = []
            while (line := read_packet(response.read)) not in (None, DELIMITER):
                lines.append(line.strip())
            if section == b"shallow-info":
                _update_shallow(store, lines)
        raise Failure("the server sent no pack")

    def _fetch_older(self, wants, arguments, haves, deepens, store):
        known = [word for word in ("thin-pack", "ofs-delta", "no-progress", "include-tag", "side-band-64k") if word in self._capabilities]
        if "side-band-64k" not in self._capabilities:
            raise Failure("the server's protocol is older than what is spoken here")
        lines = [b"want %b%b\n" % (sha, b"" if at else b" " + " ".join(known).encode()) for at, sha in enumerate(wants)]
        body = b"".join(map(packet, lines + arguments)) + FLUSH + b"".join(map(packet, haves + [b"done\n"]))
        response = self._post(body)
        if deepens:
            _update_shallow(store, [line.strip() for line in packets(response.read)])
        while (line := read_packet(response.read)) is not None:
            if not line.startswith(b"ACK ") or len(line.split()) < 3:
                break
        return response

    # Pushing.

    def push(self, git, updates, atomic):
        """Sends updates; why each was refused, by its reference."""
        store = git.store.object_store
        known = ["report-status", "side-band-64k", "ofs-delta", "delete-refs", "atomic"]
        if atomic and "atomic" not in self._capabilities:
            raise Failure("the receiving end does not support --atomic push")
        words = [word for word in known if word in self._capabilities and (word != "atomic" or atomic)]
        zero = b"0" * 40
        lines = [b"%b %b %b" % (one.before or zero, one.sha or zero, one.target) for one in updates]
        lines[0] += b"\0 " + " ".join([*words, "object-format=sha1" if "object-format" in self._capabilities else ""]).encode()
        body = b"".join(map(packet, lines)) + FLUSH
        wants = [one.sha for one in updates if one.sha]

        def write_all(write):
            write(body)
            _write_pack(write, store, [sha for sha in set(self.listed.values()) if sha in store], wants, git.store.get_shallow())

        response = self._post(write_all if wants else body)
        report = _Band(response, says=True).read if "side-band-64k" in words else response.read
        refused, unpacked = {}, None
        for line in packets(report):
            kind, _, rest = line.rstrip(b"\n").partition(b" ")
            if kind == b"unpack":
                unpacked = rest.decode(errors="replace")
            elif kind == b"ng":
                ref, _, why = rest.partition(b" ")
                refused[ref] = why.decode(errors="replace")
        # Reads the messages of the server behind its report.
        while report(PIECE_OF_TALK):
            pass
        response.close()
        if unpacked is None:
            raise Failure("the remote end hung up unexpectedly")
        if unpacked != "ok":
            say(f"error: remote unpack failed: {unpacked}\n")
        return refused


PIECE_OF_TALK = 4096


class _Band:
    """Data in packets, beside which the server talks."""

    def __init__(self, response, says=False):
        self._response, self._says = response, says
        self._data, self._said, self._ended = bytearray(), b"", False

    def read(self, count):
        while len(self._data) < count and not self._ended:
            line = read_packet(self._response.read)
            if line is None:
                self._ended = True
                self._say(b"", True)
            elif line[:1] == b"\1":
                self._data += line[1:]
            elif line[:1] == b"\2":
                self._say(line[1:])
            elif line[:1] == b"\3":
                raise Failure(f"remote error: {line[1:].decode(errors='replace').strip()}")
        data = bytes(self._data[:count])
        del self._data[:count]
        return data

    def _say(self, data, ended=False):
        """Shows whole lines of what the server says. Progress comes back to the beginning of a line, and is not shown."""
        if not self._says:
            return
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            say_remote(line.rpartition(b"\r")[2].decode(errors="surrogateescape"))
        if ended and self._said:
            say(f"remote: {self._said.decode(errors='surrogateescape')}\n")


def _haves(git):
    from dulwich.object_store import ObjectStoreGraphWalker

    store = git.store
    heads = {git.value(ref) for ref in git.refs.allkeys()} - {None}
    commits = {sha for sha in (git.peel(sha, Commit) for sha in heads) if sha}
    walker = ObjectStoreGraphWalker(commits, store.get_parents)
    found = []
    while len(found) < MOST_HAVES and (sha := next(walker)):
        found.append(sha)
    return found


def _update_shallow(store, lines):
    new = {line[8:] for line in lines if line.startswith(b"shallow ")}
    gone = {line[10:] for line in lines if line.startswith(b"unshallow ")}
    store.update_shallow(new, gone)


def _take_pack(store, read):
    """Puts a pack into the store, unless there is nothing in it."""
    head = read(12)
    if len(head) < 12 or head[:4] != b"PACK":
        raise Failure("the server sent no pack")
    if head[8:] == b"\0\0\0\0":
        read(20)
        return None
    rest = bytearray(head)

    def read_all(count):
        if rest:
            data = bytes(rest[:count])
            del rest[:count]
            return data + (read(count - len(data)) if len(data) < count else b"")
        return read(count)

    try:
        return store.add_thin_pack(read_all, lambda count: read_all(min(count, 65536)))
    except (AssertionError, ValueError, KeyError, EOFError) as why:
        raise Failure(f"index-pack failed: {why}")


def _write_pack(write, store, haves, wants, shallow):
    from dulwich.object_format import DEFAULT_OBJECT_FORMAT
    from dulwich.pack import write_pack_data

    count, records = store.generate_pack_data(haves, wants, shallow=shallow)
    write_pack_data(write, records, DEFAULT_OBJECT_FORMAT, num_records=count)


def promise(git):
    """Lets a repository that was cloned in part fetch what is missing when it is needed; what fetches it, or None."""
    import _git_remotes

    name = next((name for name, keys in _git_remotes.names(git).items() if keys.get("promisor") == ["true"]), None)
    if name is None:
        return None
    store, remotes = git.store.object_store, []
    own = store.get_raw

    def fetch(shas):
        missing = [sha for sha in set(shas) if sha not in store]
        if missing:
            if not remotes:
                remotes.append(HttpRemote(git.config.get(f"remote.{name}.url") or "", git.config, prefixes=[b"HEAD"]))
            remotes[0].fetch_objects(git, missing)

    def get_raw(sha):
        try:
            return own(sha)
        except KeyError:
            fetch([sha if len(sha) == 40 else sha.hex().encode()])
            return own(sha)

    store.get_raw = get_raw
    return fetch
