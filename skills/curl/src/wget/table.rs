//! The options of wget by their names.

/// Letters, and the two letters behind `-n`, with the names that they stand for.
pub const SHORT: &[(&str, &str)] = &[
    ("q", "quiet"),
    ("v", "verbose"),
    ("nv", "no-verbose"),
    ("S", "server-response"),
    ("o", "output-file"),
    ("a", "append-output"),
    ("d", "debug"),
    ("O", "output-document"),
    ("P", "directory-prefix"),
    ("c", "continue"),
    ("nc", "no-clobber"),
    ("N", "timestamping"),
    ("nd", "no-directories"),
    ("x", "force-directories"),
    ("nH", "no-host-directories"),
    ("E", "adjust-extension"),
    ("i", "input-file"),
    ("F", "force-html"),
    ("B", "base"),
    ("U", "user-agent"),
    ("T", "timeout"),
    ("t", "tries"),
    ("w", "wait"),
    ("Q", "quota"),
    ("r", "recursive"),
    ("l", "level"),
    ("np", "no-parent"),
    ("A", "accept"),
    ("R", "reject"),
    ("I", "include-directories"),
    ("X", "exclude-directories"),
    ("p", "page-requisites"),
    ("k", "convert-links"),
    ("m", "mirror"),
    ("H", "span-hosts"),
    ("D", "domains"),
    ("L", "relative"),
    ("e", "execute"),
    ("4", "inet4-only"),
    ("6", "inet6-only"),
    ("h", "help"),
    ("V", "version"),
    ("b", "background"),
    ("K", "backup-converted"),
];

/// Options without a value that change nothing here.
const IGNORED: &[&str] = &[
    "debug",
    "inet4-only",
    "inet6-only",
    "no-proxy",
    "no-cache",
    "no-dns-cache",
    "no-glob",
    "no-hsts",
    "no-http-keep-alive",
    "show-progress",
    "no-config",
    "no-iri",
    "no-if-modified-since",
    "random-wait",
    "relative",
    "unlink",
    "verbose",
    "ignore-length",
    "no-warc-compression",
    "auth-no-challenge",
    "https-only",
];

/// Options with a value that change nothing here.
const IGNORED_VALUES: &[&str] =
    &["progress", "dns-timeout", "restrict-file-names", "secure-protocol", "prefer-family", "report-speed", "config"];

/// Options that are not here, and why.
pub const REFUSED: &[(&str, &str)] = &[
    ("no-check-certificate", "certificates are always verified; an administrator can add one with [network] ca_file"),
    ("ca-certificate", "certificates are always verified; an administrator can add one with [network] ca_file"),
    ("ca-directory", "certificates are always verified; an administrator can add one with [network] ca_file"),
    ("certificate", "certificates of clients are not supported"),
    ("private-key", "certificates of clients are not supported"),
    ("background", "nothing runs after the command line has ended"),
    ("use-askpass", "there is no terminal; give --user and --password"),
    ("ask-password", "there is no terminal; give --user and --password"),
    ("warc-file", "WARC files are not written"),
    ("backup-converted", "converted files have no backups"),
];

/// Options that take a value.
const VALUES: &[&str] = &[
    "output-file",
    "append-output",
    "output-document",
    "directory-prefix",
    "input-file",
    "base",
    "user-agent",
    "timeout",
    "connect-timeout",
    "read-timeout",
    "tries",
    "wait",
    "waitretry",
    "retry-on-http-error",
    "limit-rate",
    "quota",
    "level",
    "accept",
    "reject",
    "include-directories",
    "exclude-directories",
    "domains",
    "execute",
    "header",
    "referer",
    "post-data",
    "post-file",
    "method",
    "body-data",
    "body-file",
    "user",
    "password",
    "http-user",
    "http-password",
    "load-cookies",
    "save-cookies",
    "max-redirect",
    "compression",
    "cut-dirs",
];

const FLAGS: &[&str] = &[
    "quiet",
    "no-verbose",
    "server-response",
    "continue",
    "no-clobber",
    "timestamping",
    "no-directories",
    "force-directories",
    "no-host-directories",
    "adjust-extension",
    "force-html",
    "recursive",
    "no-parent",
    "page-requisites",
    "convert-links",
    "mirror",
    "span-hosts",
    "help",
    "version",
    "content-disposition",
    "trust-server-names",
    "no-use-server-timestamps",
    "delete-after",
    "spider",
    "keep-session-cookies",
    "no-cookies",
    "content-on-error",
    "retry-connrefused",
];

/// Whether an option takes a value.
pub fn takes_value(name: &str) -> bool {
    VALUES.contains(&name)
        || IGNORED_VALUES.contains(&name)
        || ["ca-certificate", "ca-directory", "certificate", "private-key", "use-askpass", "warc-file"].contains(&name)
}

/// The option with this name, or with the only name that begins so.
pub fn whole_name(name: &str) -> Result<&'static str, String> {
    let all = || {
        let refused = REFUSED.iter().map(|(name, _)| name);
        FLAGS.iter().chain(VALUES).chain(IGNORED).chain(IGNORED_VALUES).chain(refused).copied()
    };
    if let Some(found) = all().find(|known| *known == name) {
        return Ok(found);
    }
    let mut fitting = all().filter(|known| known.starts_with(name));
    match (fitting.next(), fitting.next()) {
        (Some(found), None) => Ok(found),
        (Some(_), Some(_)) => Err(format!("option '--{name}' is ambiguous")),
        _ => Err(format!("unrecognized option '--{name}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_has_its_name() {
        assert!(SHORT.iter().all(|(_, name)| whole_name(name) == Ok(*name)));
    }
}
