//! Limits of everything that a server, a page or a command line chooses.

/// Bytes of one file that is read into memory: a configuration, a cookie jar, data whose line ends are removed.
pub const FILE_IN_MEMORY: u64 = 64 << 20;

/// Headers of a request, and bytes of them.
pub const REQUEST_HEADERS: usize = 200;
pub const REQUEST_HEADER_BYTES: usize = 128 << 10;

/// Cookies in a jar, and bytes of one.
pub const COOKIES: usize = 1_000;
pub const COOKIE_BYTES: usize = 4_096;

/// Cookies in one request, as in curl.
pub const COOKIES_SENT: usize = 150;

/// Redirects that `--max-redirs -1` follows.
pub const REDIRECTS: u32 = 1_000;

/// URLs that one pattern makes.
pub const GLOBBED: u64 = 1_000;

/// Files of one `wget -r`, bytes of a page that is searched for links, and links in it.
pub const SITE_FILES: usize = 200;
pub const PAGE_BYTES: u64 = 8 << 20;
pub const PAGE_LINKS: usize = 5_000;

/// Bytes of a robots.txt.
pub const ROBOTS_BYTES: usize = 512 << 10;

/// Configuration files in one another.
pub const CONFIG_DEPTH: usize = 5;

/// Bytes of a URL.
pub const URL_BYTES: usize = 64 << 10;
