//! The files that URLs are saved in.

use super::option::Options;
use crate::url::{Url, decode};
use std::path::{Path, PathBuf};

/// The name for a URL without a file in its path.
const INDEX: &str = "index.html";

/// Bytes of a name: more is cut.
const LONGEST: usize = 236;

/// The file that a URL is saved in, below the directory of `-P`.
pub fn path_of(options: &Options, url: &Url) -> PathBuf {
    let mut parts: Vec<String> = url.path.split('/').skip(1).map(|part| cleaned(&decode(part))).collect();
    let mut name = parts.pop().unwrap_or_default();
    if name.is_empty() {
        name = INDEX.to_owned();
    }
    if let Some(query) = &url.query {
        name = format!("{name}?{}", cleaned(&decode(query)));
    }
    let mut path = options.prefix.as_deref().map(PathBuf::from).unwrap_or_default();
    if (options.recursive || options.requisites || options.force_directories) && !options.no_directories {
        if !options.no_host_directories {
            path.push(cleaned(&url.host_header()));
        }
        path.extend(parts.iter().filter(|part| !part.is_empty()).skip(options.cut_dirs));
    }
    path.join(shortened(name))
}

/// A part of a path that stays one: no slash, no control character, and not the name of a directory above.
fn cleaned(part: &str) -> String {
    let encode = |c: char| match c {
        '/' | '\0'..='\u{1f}' | '\u{7f}' => format!("%{:02X}", u32::from(c)),
        c => c.to_string(),
    };
    let part: String = part.chars().map(encode).collect();
    match part.as_str() {
        ".." => "%2E%2E".to_owned(),
        "." => "%2E".to_owned(),
        _ => shortened(part),
    }
}

fn shortened(name: String) -> String {
    name[..name.floor_char_boundary(LONGEST)].to_owned()
}

/// A name that no file has: with `.1` and so on, if there is one.
pub fn unused(path: &Path) -> PathBuf {
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", path.display()));
    let is_free = |path: &PathBuf| path.symlink_metadata().is_err();
    let free = std::iter::once(path.to_owned()).chain((1..10_000).map(numbered)).find(is_free);
    free.unwrap_or_else(|| path.to_owned())
}

/// The name with `.html` behind it, if an HTML page has another.
pub fn adjusted(path: PathBuf, content_type: &str) -> PathBuf {
    let lower = path.to_string_lossy().to_ascii_lowercase();
    let end = match content_type {
        "text/html" | "application/xhtml+xml" if !lower.ends_with(".html") && !lower.ends_with(".htm") => ".html",
        "text/css" if !lower.ends_with(".css") => ".css",
        _ => return path,
    };
    PathBuf::from(format!("{}{end}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_file_below_the_directory() {
        let line = |words: &str| Options::parse(&words.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap();
        for (words, url, expected) in [
            ("h", "http://h/a/b.txt?x=1", "b.txt?x=1"),
            ("h", "http://h/", "index.html"),
            ("-P d h", "http://h/a%20b", "d/a b"),
            ("-r h", "http://h:8/a/b/", "h:8/a/b/index.html"),
            ("-r -nH --cut-dirs=1 h", "http://h:80/a/b/c", "b/c"),
            ("-r -nd h", "http://h/a/b", "b"),
            ("-x h", "http://h/a/%2e%2e/b", "h/a/%2E%2E/b"),
            ("h", "http://h/a%2fb%00", "a%2Fb%00"),
        ] {
            let path = path_of(&line(words), &Url::parse(url).unwrap());
            assert_eq!(path.to_str(), Some(expected), "{words} {url}");
        }
        assert_eq!(
            path_of(&line("h"), &Url::parse(&format!("http://h/{}", "x".repeat(999))).unwrap()).as_os_str().len(),
            LONGEST
        );
        assert_eq!(adjusted("a".into(), "text/html"), PathBuf::from("a.html"));
    }
}
