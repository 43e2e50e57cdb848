//! Pathname expansion.

use std::fs;

use super::split::{self, Field, Kind, Mark};
use super::{Env, Opt, Pattern, Reach, Stop};

/// More names than this for one word would not fit a command's arguments anyway, and links to directories can make any
/// number of paths out of few files.
const MAX_MATCHES: usize = 100_000;

/// Adds the names that a field matches, or the field itself.
pub fn expand(env: &dyn Env, field: Field, words: &mut Vec<String>) -> Result<(), Stop> {
    let magic = |segment: &split::Segment| segment.kind != Kind::Quoted && segment.text.contains(['*', '?', '[', '(']);
    if env.option(Opt::Noglob) || !field.iter().any(magic) {
        words.push(split::join(&field));
        return Ok(());
    }
    let marks = split::marks(&field);
    if !is_glob(&marks, env.option(Opt::Extglob)) {
        words.push(split::join(&field));
        return Ok(());
    }
    let ignored = env.get("GLOBIGNORE").and_then(super::value::scalar).filter(|patterns| !patterns.is_empty());
    let mut walk = Walk::new(env);
    // Whoever says what to leave out sees all else.
    walk.dotglob |= ignored.is_some();
    let mut found = walk.all(&marks)?;
    if let Some(ignored) = ignored {
        let patterns: Vec<Pattern> = colons(&ignored).iter().map(|text| Pattern::new(text, true, walk.fold)).collect();
        found.retain(|path| !is_dots(path) && !patterns.iter().any(|pattern| matches_path(pattern, path)));
    }
    if !found.is_empty() {
        found.sort_unstable();
        words.append(&mut found);
    } else if env.option(Opt::Failglob) {
        let reach = if env.named_option("errexit") { Reach::Shell } else { Reach::Line };
        return Err(Stop { message: format!("no match: {}", split::join(&field)), code: 1, reach });
    } else if !env.option(Opt::Nullglob) {
        words.push(split::join(&field));
    }
    Ok(())
}

/// The patterns of `GLOBIGNORE`, which colons separate; one in brackets or behind a backslash does not.
fn colons(text: &str) -> Vec<Vec<Mark>> {
    let mut patterns = vec![Vec::new()];
    let (mut chars, mut brackets) = (text.chars(), 0_usize);
    while let Some(c) = chars.next() {
        let last = patterns.len() - 1;
        match c {
            '\\' => patterns[last].extend(chars.next().map(|c| (c, true))),
            ':' if brackets == 0 => patterns.push(Vec::new()),
            c => {
                match c {
                    '[' => brackets += 1,
                    ']' => brackets = brackets.saturating_sub(1),
                    _ => {}
                }
                patterns[last].push((c, false));
            }
        }
    }
    patterns
}

/// A star of `GLOBIGNORE` does not reach over a slash.
fn matches_path(pattern: &Pattern, path: &str) -> bool {
    pattern.slashes() == path.matches('/').count() && pattern.matches_text(path)
}

fn is_dots(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("." | ".."))
}

/// Whether anything in it stands for more than itself.
fn is_glob(marks: &[Mark], extended: bool) -> bool {
    let mut open = false;
    marks.iter().enumerate().any(|(at, mark)| match mark {
        ('*' | '?', false) => true,
        ('[', false) => {
            open = true;
            false
        }
        (']', false) => open,
        ('(', false) => extended && at > 0 && matches!(marks[at - 1], ('@' | '+' | '!', false)),
        _ => false,
    })
}

struct Walk<'a> {
    cwd: &'a str,
    dotglob: bool,
    globstar: bool,
    extended: bool,
    fold: bool,
    /// `.` and `..` match nothing.
    skip_dots: bool,
}

impl<'a> Walk<'a> {
    fn new(env: &'a dyn Env) -> Self {
        Self {
            cwd: env.cwd(),
            dotglob: env.option(Opt::Dotglob),
            globstar: env.option(Opt::Globstar),
            extended: env.option(Opt::Extglob),
            fold: env.option(Opt::Nocaseglob),
            skip_dots: env.option(Opt::SkipDots),
        }
    }

    /// One part of the path after the other, over all paths that matched so far.
    fn all(&self, marks: &[Mark]) -> Result<Vec<String>, Stop> {
        let parts: Vec<&[Mark]> = marks.split(|mark| mark.0 == '/').collect();
        let mut paths = vec![String::new()];
        // The last parts without pattern were taken as they are, so they may not exist.
        let mut unseen = false;
        for (index, part) in parts.iter().enumerate() {
            let last = index + 1 == parts.len();
            let slash = if last { "" } else { "/" };
            if !is_glob(part, self.extended) {
                let name: String = part.iter().map(|mark| mark.0).collect();
                paths.iter_mut().for_each(|path| path.extend([name.as_str(), slash]));
                unseen = true;
                continue;
            }
            let mut next = Vec::new();
            if self.globstar && **part == [('*', false), ('*', false)] {
                for path in &paths {
                    self.descend(path, last, &mut next)?;
                }
            } else {
                let pattern = Pattern::new(part, self.extended, self.fold);
                for path in &paths {
                    for name in self.names(path) {
                        let visible =
                            self.dotglob && !is_dots(&name) || !name.starts_with('.') || pattern.starts_with_dot();
                        if visible && pattern.matches_text(&name) {
                            next.push(format!("{path}{name}{slash}"));
                        }
                    }
                    check(next.len())?;
                }
                if !last {
                    next.retain(|path| self.is_directory(path));
                }
            }
            paths = next;
            unseen = false;
        }
        // `**/` stands for the directory itself too, which has no name.
        paths.retain(|path| !path.is_empty());
        if unseen {
            paths.retain(|path| self.exists(path));
        }
        Ok(paths)
    }

    /// `**`: all directories below `path`, itself included; as the last part of a path also all files.
    fn descend(&self, path: &str, last: bool, found: &mut Vec<String>) -> Result<(), Stop> {
        let mut open = vec![path.to_owned()];
        while let Some(path) = open.pop() {
            if !last || !path.is_empty() {
                found.push(path.clone());
            }
            for name in self.names(&path) {
                if name.starts_with('.') && !self.dotglob || is_dots(&name) {
                    continue;
                }
                let child = format!("{path}{name}");
                let directory = fs::symlink_metadata(self.absolute(&child)).is_ok_and(|data| data.is_dir());
                if directory {
                    open.push(child + "/");
                } else if last {
                    found.push(child);
                }
            }
            check(found.len() + open.len())?;
        }
        if last {
            // As names of files, directories have no slash; the one that it starts from keeps it.
            found.iter_mut().filter(|each| *each != path).for_each(|each| {
                each.truncate(each.trim_end_matches('/').len());
            });
        }
        Ok(())
    }

    /// The names in a directory; empty if it cannot be read.
    fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.absolute(path)) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let dots = [".", ".."].into_iter().filter(|_| !self.skip_dots).map(str::to_owned);
        dots.chain(names).collect()
    }

    fn is_directory(&self, path: &str) -> bool {
        fs::metadata(self.absolute(path)).is_ok_and(|data| data.is_dir())
    }

    fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.absolute(path)).is_ok()
    }

    fn absolute(&self, path: &str) -> String {
        crate::path::absolute(self.cwd, path)
    }
}

fn check(count: usize) -> Result<(), Stop> {
    if count > MAX_MATCHES {
        return Err(Stop::failed(format!("a pattern matches more than {MAX_MATCHES} names (find has no such limit)")));
    }
    Ok(())
}
