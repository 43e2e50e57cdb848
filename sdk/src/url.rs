//! As much of RFC 3986 as redirects and links need: resolving a reference against the URL it was found in.

/// Whether a URL begins with `https:`.
pub fn is_https(url: &str) -> bool {
    url.get(..6).is_some_and(|s| s.eq_ignore_ascii_case("https:"))
}

/// `reference` as an absolute URL, found in a document at `base` (RFC 3986, section 5.2). `base` is absolute.
pub fn join(base: &str, reference: &str) -> String {
    // Pages break long links over lines; browsers drop the breaks.
    let reference: String = reference.trim().chars().filter(|c| !matches!(c, '\n' | '\r' | '\t')).collect();
    if has_scheme(&reference) {
        return reference;
    }
    let base = base.split('#').next().unwrap_or(base);
    let Some((scheme, rest)) = base.split_once("://") else { return reference };
    if reference.starts_with("//") {
        return format!("{scheme}:{reference}");
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let before_query = path.split('?').next().unwrap_or(path);
    match reference.chars().next() {
        None => base.to_owned(),
        Some('#') => format!("{base}{reference}"),
        Some('?') => {
            format!("{scheme}://{authority}{}{reference}", if before_query.is_empty() { "/" } else { before_query })
        }
        Some('/') => format!("{scheme}://{authority}{}", without_dots(&reference)),
        Some(_) => {
            let folder = before_query.rfind('/').map_or("/", |n| &before_query[..=n]);
            format!("{scheme}://{authority}{}", without_dots(&format!("{folder}{reference}")))
        }
    }
}

fn has_scheme(reference: &str) -> bool {
    reference.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    })
}

/// The path without "." and ".." (RFC 3986, section 5.2.4); query and fragment are kept as they are.
fn without_dots(path: &str) -> String {
    let end = path.find(['?', '#']).unwrap_or(path.len());
    let (path, rest) = path.split_at(end);
    let mut kept: Vec<&str> = Vec::new();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    for (n, part) in parts.iter().enumerate() {
        let last = n + 1 == parts.len();
        match *part {
            "." | ".." => {
                if *part == ".." {
                    kept.pop();
                }
                if last {
                    kept.push("");
                }
            }
            part => kept.push(part),
        }
    }
    format!("/{}{rest}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 3986, section 5.4, that are not about obsolete forms.
    #[test]
    fn references_resolve_as_the_standard_says() {
        let base = "http://a/b/c/d;p?q";
        let cases = [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q#s"),
            ("g#s", "http://a/b/c/g#s"),
            (";x", "http://a/b/c/;x"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./g/.", "http://a/b/c/g/"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
        ];
        for (reference, expected) in cases {
            assert_eq!(join(base, reference), expected, "{reference}");
        }
    }

    #[test]
    fn a_base_may_have_no_path() {
        assert_eq!(join("https://example.com", "x"), "https://example.com/x");
        assert_eq!(join("https://example.com?q=1", "/x"), "https://example.com/x");
        assert_eq!(join("https://example.com", "?q"), "https://example.com/?q");
        assert_eq!(join("https://example.com/a#b", "#c"), "https://example.com/a#c");
    }
}
