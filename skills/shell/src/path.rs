//! Paths: what a name means from the working directory.

use std::fs;

/// How many links in a row are followed, as on Linux.
const MOST_LINKS: usize = 40;

/// A path as the host takes it. `..` behind a link means what the link leads to; only a path that leaves the directory of
/// `/` in which it begins is resolved by its letters, because none of these directories knows of the others.
pub fn absolute(cwd: &str, path: &str) -> String {
    let joined = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", cwd.trim_end_matches('/')) };
    if leaves(&joined) { resolve(&joined) } else { joined }
}

fn leaves(path: &str) -> bool {
    let mut depth = 0_usize;
    path.split('/').any(|part| match part {
        "" | "." => false,
        ".." if depth < 2 => true,
        ".." => {
            depth -= 1;
            false
        }
        _ => {
            depth += 1;
            false
        }
    })
}

/// Without `.` and `..`, which go by the letters: `cd link/..` stays where it was.
pub fn resolve(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Without links, `.` and `..`; nothing if there is no file.
pub fn physical(path: &str) -> Option<String> {
    let mut links = 0;
    let mut open: Vec<String> = path.rsplit('/').map(str::to_owned).collect();
    let mut found: Vec<String> = Vec::new();
    while let Some(part) = open.pop() {
        match part.as_str() {
            "" | "." => continue,
            ".." => {
                found.pop();
                continue;
            }
            _ => found.push(part),
        }
        let Ok(target) = fs::read_link(format!("/{}", found.join("/"))) else { continue };
        links += 1;
        if links > MOST_LINKS {
            return None;
        }
        let target = target.to_str()?;
        found.pop();
        if target.starts_with('/') {
            found.clear();
        }
        open.extend(target.rsplit('/').map(str::to_owned));
    }
    let path = format!("/{}", found.join("/"));
    fs::metadata(&path).ok().map(|_| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolves_by_the_letters() {
        assert_eq!(resolve("/work/a/../b/./c//"), "/work/b/c");
        assert_eq!(resolve("/work/../../x"), "/x");
        assert_eq!(resolve("/.."), "/");
    }

    #[test]
    fn only_what_leaves_its_directory_is_resolved() {
        assert_eq!(absolute("/work", "link/../x"), "/work/link/../x");
        assert_eq!(absolute("/work/a", "../../tmp/x"), "/tmp/x");
        assert_eq!(absolute("/", "work/x"), "/work/x");
        assert_eq!(absolute("/work", ".."), "/");
    }
}
