# `ssl` where the host makes requests. It encrypts nothing here: it notes that a connection is one of HTTPS, with the name in the
# certificate, and the host encrypts it and verifies the certificate, whatever a context says.
import collections
import enum
import errno
import os
import socket as _socket
import sys

from _kiso_http import TLS_MARK, other_protocol

OPENSSL_VERSION_INFO = (3, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30000000
# Programs look for the first word; the host verifies with a library of its own.
OPENSSL_VERSION = "OpenSSL 3.0.0 (in its place: kiso)"

HAS_SNI = HAS_ECDH = HAS_ALPN = HAS_TLSv1_2 = HAS_TLSv1_3 = HAS_NEVER_CHECK_COMMON_NAME = True
HAS_NPN = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = HAS_PSK = HAS_PHA = False
PEM_HEADER, PEM_FOOTER = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
SSL_ERROR_SSL, SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_X509_LOOKUP, SSL_ERROR_SYSCALL = 1, 2, 3, 4, 5
SSL_ERROR_ZERO_RETURN, SSL_ERROR_WANT_CONNECT, SSL_ERROR_EOF, SSL_ERROR_INVALID_ERROR_CODE = 6, 7, 8, 10
CHANNEL_BINDING_TYPES = []
SOL_SOCKET, SO_TYPE = _socket.SOL_SOCKET, _socket.SO_TYPE

NOT_VERIFIED = "certificates are verified here whatever a program says, by the host and with its own authorities"
NO_SERVER = "programs cannot be servers here"


class VerifyMode(enum.IntEnum):
    CERT_NONE, CERT_OPTIONAL, CERT_REQUIRED = range(3)


class VerifyFlags(enum.IntFlag):
    VERIFY_DEFAULT = 0
    VERIFY_CRL_CHECK_LEAF, VERIFY_CRL_CHECK_CHAIN = 0x4, 0xC
    VERIFY_X509_STRICT, VERIFY_ALLOW_PROXY_CERTS = 0x20, 0x40
    VERIFY_X509_TRUSTED_FIRST, VERIFY_X509_PARTIAL_CHAIN = 0x8000, 0x80000


class Options(enum.IntFlag):
    OP_ALL = 0x80000050
    OP_LEGACY_SERVER_CONNECT = 0x4
    OP_IGNORE_UNEXPECTED_EOF = 0x80
    OP_NO_TICKET = 0x4000
    OP_NO_COMPRESSION = 0x20000
    OP_ENABLE_KTLS = 0x8
    OP_ENABLE_MIDDLEBOX_COMPAT = 0x100000
    OP_SINGLE_DH_USE = OP_SINGLE_ECDH_USE = OP_NO_SSLv2 = 0
    OP_CIPHER_SERVER_PREFERENCE = 0x400000
    OP_NO_SSLv3 = 0x2000000
    OP_NO_TLSv1 = 0x4000000
    OP_NO_TLSv1_2 = 0x8000000
    OP_NO_TLSv1_1 = 0x10000000
    OP_NO_TLSv1_3 = 0x20000000
    OP_NO_RENEGOTIATION = 0x40000000


class TLSVersion(enum.IntEnum):
    MINIMUM_SUPPORTED, MAXIMUM_SUPPORTED = -2, -1
    SSLv3, TLSv1, TLSv1_1, TLSv1_2, TLSv1_3 = range(0x300, 0x305)


class _SSLMethod(enum.IntEnum):
    PROTOCOL_SSLv23 = PROTOCOL_TLS = 2
    PROTOCOL_TLSv1, PROTOCOL_TLSv1_1, PROTOCOL_TLSv1_2 = 3, 4, 5
    PROTOCOL_TLS_CLIENT, PROTOCOL_TLS_SERVER = 16, 17


class AlertDescription(enum.IntEnum):
    ALERT_DESCRIPTION_CLOSE_NOTIFY = 0
    ALERT_DESCRIPTION_BAD_CERTIFICATE = 42
    ALERT_DESCRIPTION_CERTIFICATE_EXPIRED = 45
    ALERT_DESCRIPTION_UNKNOWN_CA = 48


class SSLErrorNumber(enum.IntEnum):
    SSL_ERROR_SSL, SSL_ERROR_WANT_READ, SSL_ERROR_WANT_WRITE = 1, 2, 3


class _ASN1Object(collections.namedtuple("_ASN1Object", "nid shortname longname oid")):
    __slots__ = ()


class Purpose(_ASN1Object, enum.Enum):
    SERVER_AUTH = (129, "serverAuth", "TLS Web Server Authentication", "1.3.6.1.5.5.7.3.1")
    CLIENT_AUTH = (130, "clientAuth", "TLS Web Client Authentication", "1.3.6.1.5.5.7.3.2")


for _kind in (VerifyMode, VerifyFlags, Options, _SSLMethod, AlertDescription):
    globals().update(_kind.__members__)


class SSLError(OSError):
    library = reason = None

    def __str__(self):
        return self.strerror if isinstance(self.strerror, str) else str(self.args)


class SSLZeroReturnError(SSLError):
    pass


class SSLWantReadError(SSLError):
    pass


class SSLWantWriteError(SSLError):
    pass


class SSLSyscallError(SSLError):
    pass


class SSLEOFError(SSLError):
    pass


class SSLCertVerificationError(SSLError, ValueError):
    verify_code, verify_message = 0, ""


CertificateError = SSLCertVerificationError
socket_error = OSError


class SSLSession:
    pass


class MemoryBIO:
    """Bytes on their way to or from a connection."""

    def __init__(self):
        self._bytes, self._ended = bytearray(), False

    pending = property(lambda self: len(self._bytes))
    eof = property(lambda self: self._ended and not self._bytes)

    def read(self, size=-1):
        size = len(self._bytes) if size is None or size < 0 else size
        data = bytes(self._bytes[:size])
        del self._bytes[:size]
        return data

    def write(self, data):
        if self._ended:
            raise SSLError("cannot write() after write_eof()")
        data = memoryview(data).cast("B")
        self._bytes += data
        return len(data)

    def write_eof(self):
        self._ended = True


_said = False


def _say_that_all_is_verified():
    global _said
    if not _said:
        _said = True
        print(f"kiso: {NOT_VERIFIED}", file=sys.stderr)


class _SSLContext:
    """The settings of a program for its connections. The host uses none of them, except that there is a name."""

    _defaults = {
        "options": Options.OP_ALL | Options.OP_NO_SSLv3, "verify_flags": VerifyFlags.VERIFY_X509_TRUSTED_FIRST,
        "minimum_version": TLSVersion.TLSv1_2, "maximum_version": TLSVersion.MAXIMUM_SUPPORTED, "check_hostname": False,
        "verify_mode": VerifyMode.CERT_NONE, "hostname_checks_common_name": True, "post_handshake_auth": False,
        "keylog_filename": None, "num_tickets": 2, "sni_callback": None, "security_level": 2,
    }  # fmt: skip

    def __new__(cls, protocol=None, *args, **kwargs):
        made = super().__new__(cls)
        made._protocol = PROTOCOL_TLS if protocol is None else _SSLMethod(protocol)
        made._said, made._alpn = dict(_SSLContext._defaults), []
        if made._protocol == PROTOCOL_TLS_CLIENT:
            made._said.update(check_hostname=True, verify_mode=CERT_REQUIRED)
        return made

    protocol = property(lambda self: self._protocol)

    def _wrapped(self, server_side, server_hostname):
        if server_side:
            raise other_protocol(NO_SERVER)
        if self.check_hostname and not server_hostname:
            raise ValueError("check_hostname requires server_hostname")
        if self.verify_mode == CERT_NONE or not self.check_hostname:
            _say_that_all_is_verified()
        return server_hostname.decode() if isinstance(server_hostname, bytes) else server_hostname or ""


def _setting(name):
    kind = {"options": Options, "verify_flags": VerifyFlags, "verify_mode": VerifyMode}.get(name, lambda value: value)

    def set(self, value):
        if name == "verify_mode" and value == CERT_NONE and self.check_hostname:
            raise ValueError("Cannot set verify_mode to CERT_NONE when check_hostname is enabled.")
        if name == "check_hostname" and value and self.verify_mode == CERT_NONE:
            self._said["verify_mode"] = CERT_REQUIRED
        self._said[name] = kind(value)

    return property(lambda self: self._said[name], set)


for _name in _SSLContext._defaults:
    setattr(_SSLContext, _name, _setting(_name))


class SSLContext(_SSLContext):
    sslsocket_class = sslobject_class = None

    def wrap_socket(
        self, sock, server_side=False, do_handshake_on_connect=True, suppress_ragged_eofs=True, server_hostname=None, session=None
    ):
        server_hostname = self._wrapped(server_side, server_hostname)
        return (self.sslsocket_class or SSLSocket)._create(sock, self, server_hostname, do_handshake_on_connect)

    def wrap_bio(self, incoming, outgoing, server_side=False, server_hostname=None, session=None):
        server_hostname = self._wrapped(server_side, server_hostname)
        return (self.sslobject_class or SSLObject)._create(incoming, outgoing, self, server_hostname)

    def load_verify_locations(self, cafile=None, capath=None, cadata=None):
        if cafile is None and capath is None and cadata is None:
            raise TypeError("cafile, capath and cadata cannot be all omitted")
        if cafile is not None and not os.path.exists(cafile):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))

    def load_cert_chain(self, certfile, keyfile=None, password=None):
        raise other_protocol("certificates of clients are not sent here")

    def set_alpn_protocols(self, alpn_protocols):
        self._alpn = [bytes(name, "ascii").decode() for name in alpn_protocols]

    def get_ciphers(self):
        return []

    def get_ca_certs(self, binary_form=False):
        return []

    def cert_store_stats(self):
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    def session_stats(self):
        return {}

    def load_default_certs(self, purpose=Purpose.SERVER_AUTH):
        pass

    def _no_effect(self, *_args, **_kwargs):
        pass

    set_default_verify_paths = set_ciphers = set_npn_protocols = set_servername_callback = _no_effect
    load_dh_params = set_ecdh_curve = _no_effect


class _Wrapped:
    """The part of a connection that both ways of wrapping share."""

    context = session = None
    server_side = session_reused = False
    server_hostname = None

    def _is_done(self):
        return True

    def version(self):
        return "TLSv1.3" if self._is_done() else None

    def cipher(self):
        return ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256) if self._is_done() else None

    def selected_alpn_protocol(self):
        return "http/1.1" if "http/1.1" in self.context._alpn else None

    def getpeercert(self, binary_form=False):
        # The host has it, and does not tell.
        return None

    def _nothing(self, *_args):
        return None

    shared_ciphers = compression = selected_npn_protocol = get_channel_binding = _nothing

    def get_verified_chain(self):
        return []

    get_unverified_chain = get_verified_chain

    def verify_client_post_handshake(self):
        raise other_protocol(NO_SERVER)


class SSLObject(_Wrapped):
    @classmethod
    def _create(cls, incoming, outgoing, context, server_hostname):
        self = cls.__new__(cls)
        self._incoming, self._outgoing, self._handshaken = incoming, outgoing, False
        self.context, self.server_hostname = context, server_hostname
        self._sslobj = self
        return self

    def _is_done(self):
        return self._handshaken

    def do_handshake(self):
        if not self._handshaken:
            self._handshaken = True
            self._outgoing.write(TLS_MARK + self.server_hostname.encode() + b"\n")

    def read(self, len=1024, buffer=None):
        if not self._incoming.pending:
            if self._incoming.eof:
                return b"" if buffer is None else 0
            raise SSLWantReadError(SSL_ERROR_WANT_READ, "The operation did not complete (read)")
        data = self._incoming.read(len)
        if buffer is None:
            return data
        memoryview(buffer).cast("B")[: data.__len__()] = data
        return data.__len__()

    def write(self, data):
        return self._outgoing.write(data)

    def pending(self):
        return self._incoming.pending

    def unwrap(self):
        pass


class SSLSocket(_Wrapped, _socket.socket):
    def __init__(self, *args, **kwargs):
        raise TypeError(f"{self.__class__.__name__} does not have a public constructor. Instances are returned by SSLContext.wrap_socket().")

    @classmethod
    def _create(cls, sock, context, server_hostname, handshake):
        self = cls.__new__(cls)
        timeout = sock.gettimeout()
        _socket.socket.__init__(self, sock.family, sock.type, sock.proto, fileno=sock.detach())
        self.settimeout(timeout)
        self.context, self.server_hostname, self._handshake = context, server_hostname, handshake
        self._sslobj = None
        if self._state().connection is not None and handshake:
            self.do_handshake()
        return self

    def _is_done(self):
        return self._sslobj is not None

    def connect(self, address):
        super().connect(address)
        if self._handshake:
            self.do_handshake()

    def do_handshake(self, block=False):
        connection = self._connected()
        if connection.tls is not None and self._sslobj is None:
            raise other_protocol("a connection is encrypted once here")
        connection.tls, self._sslobj = self.server_hostname, self

    def read(self, len=1024, buffer=None):
        return self.recv(len) if buffer is None else self.recv_into(buffer, len)

    def write(self, data):
        return self.send(data)

    def pending(self):
        return self._connected().pending()

    def unwrap(self):
        raise other_protocol("a connection stays encrypted here")


def create_default_context(purpose=Purpose.SERVER_AUTH, *, cafile=None, capath=None, cadata=None):
    if not isinstance(purpose, _ASN1Object):
        raise TypeError(purpose)
    context = SSLContext(PROTOCOL_TLS_CLIENT if purpose == Purpose.SERVER_AUTH else PROTOCOL_TLS_SERVER)
    if cafile or capath or cadata:
        context.load_verify_locations(cafile, capath, cadata)
    return context


def _create_unverified_context(
    protocol=None, *, cert_reqs=CERT_NONE, check_hostname=False, purpose=Purpose.SERVER_AUTH, certfile=None, keyfile=None,
    cafile=None, capath=None, cadata=None,
):  # fmt: skip
    context = SSLContext(protocol or PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_hostname
    context.verify_mode = cert_reqs
    return context


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context

DefaultVerifyPaths = collections.namedtuple(
    "DefaultVerifyPaths", "cafile capath openssl_cafile_env openssl_cafile openssl_capath_env openssl_capath"
)


def get_default_verify_paths():
    return DefaultVerifyPaths(None, None, "SSL_CERT_FILE", "/etc/ssl/cert.pem", "SSL_CERT_DIR", "/etc/ssl/certs")


def get_server_certificate(addr, ssl_version=None, ca_certs=None, timeout=None):
    raise other_protocol("the host verifies certificates, and does not tell what is in them")


def cert_time_to_seconds(cert_time):
    import calendar
    import time

    return calendar.timegm(time.strptime(cert_time, "%b %d %H:%M:%S %Y GMT"))


def DER_cert_to_PEM_cert(der_cert_bytes):
    import base64

    text = base64.standard_b64encode(der_cert_bytes).decode()
    return "\n".join([PEM_HEADER, *(text[at : at + 64] for at in range(0, len(text), 64)), PEM_FOOTER, ""])


def PEM_cert_to_DER_cert(pem_cert_string):
    import base64

    text = pem_cert_string.strip()
    if not text.startswith(PEM_HEADER) or not text.endswith(PEM_FOOTER):
        raise ValueError(f"Invalid PEM encoding; must start with {PEM_HEADER} and end with {PEM_FOOTER}")
    return base64.decodebytes(text[len(PEM_HEADER) : -len(PEM_FOOTER)].encode())


def RAND_bytes(n):
    return os.urandom(n)


def RAND_status():
    return True


def RAND_add(string, entropy):
    pass


def get_protocol_name(protocol_code):
    return _SSLMethod(protocol_code).name
