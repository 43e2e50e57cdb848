//! `-r`, `-p` and `-k`: the files of a site.

use super::client::{Client, Saved};
use super::links::{self, Page};
use super::name;
use super::option::Options;
use crate::limits::{PAGE_BYTES, SITE_FILES};
use crate::url::Url;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A URL that is still to be fetched.
struct QueuedUrl {
    url: Url,
    depth: u32,
    referer: Option<String>,
    is_requisite: bool,
}

/// Fetches sites, breadth first.
pub fn fetch(client: &mut Client<'_>, starts: &[String]) {
    let mut queue = VecDeque::new();
    let mut seen = HashSet::new();
    let mut roots = Vec::new();
    let mut robots: HashMap<String, Vec<String>> = HashMap::new();
    for start in starts {
        match Url::parse(start) {
            Ok(url) if ["http", "https"].contains(&url.scheme.as_str()) => {
                roots.push(url.clone());
                seen.insert(key(&url));
                queue.push_back(QueuedUrl { url, depth: 0, referer: None, is_requisite: false });
            }
            _ => drop(client.start(start)),
        }
    }
    let mut count = 0;
    while let Some(wanted) = queue.pop_front() {
        if count >= SITE_FILES {
            client.log.brief(&format!(
                "wget: a site is fetched up to {SITE_FILES} files; {} more were found\n",
                queue.len() + 1
            ));
            break;
        }
        count += 1;
        let Some(saved) = client.fetch(&wanted.url, wanted.referer.as_deref()) else { continue };
        let Some(page) = page_of(&saved) else { continue };
        let options = client.options;
        let goes_on =
            options.recursive && options.level.is_none_or(|level| wanted.depth < level) && !wanted.is_requisite;
        let needs = options.requisites && (wanted.depth == 0 || goes_on || options.recursive || wanted.is_requisite);
        let base = page.base.as_ref().and_then(|base| saved.url.join(base).ok()).unwrap_or_else(|| saved.url.clone());
        for link in page.links {
            let fits_depth = goes_on && !page.nofollow || needs && link.is_requisite;
            let Ok(url) = base.join(&link.text) else { continue };
            if !fits_depth
                || !is_wanted(options, &roots, &url, link.is_requisite && options.requisites)
                || !seen.insert(key(&url))
            {
                continue;
            }
            if options.robots && is_forbidden(client, &mut robots, &url) {
                continue;
            }
            let is_requisite = link.is_requisite && !goes_on;
            let referer = Some(saved.url.without_login().to_string());
            let url = Url { fragment: None, ..url };
            queue.push_back(QueuedUrl { url, depth: wanted.depth + 1, referer, is_requisite });
        }
    }
    if client.options.convert {
        convert(&client.saved, client.options.adjust_extension);
    }
    remove_rejected(client);
}

/// The same text for two URLs of one file.
fn key(url: &Url) -> String {
    Url { fragment: None, ..url.without_login() }.to_string()
}

/// The links of a file, if it is a page or a style sheet.
fn page_of(saved: &Saved) -> Option<Page> {
    let is_style = saved.content_type == "text/css";
    let is_page = matches!(saved.content_type.as_str(), "text/html" | "application/xhtml+xml");
    if !is_page && !is_style || saved.path.metadata().ok()?.len() > PAGE_BYTES {
        return None;
    }
    let text = String::from_utf8(fs::read(&saved.path).ok()?)
        .unwrap_or_else(|e| e.as_bytes().iter().map(|byte| char::from(*byte)).collect());
    Some(match is_style {
        true => Page { links: links::of_style(&text, 0), ..Page::default() },
        false => links::of_page(&text),
    })
}

fn is_wanted(options: &Options, roots: &[Url], url: &Url, is_requisite: bool) -> bool {
    if !["http", "https"].contains(&url.scheme.as_str()) {
        return false;
    }
    let is_own = roots.iter().any(|root| root.host == url.host && root.port_or_default() == url.port_or_default());
    let in_domain = |domain: &String| url.host == *domain || url.host.ends_with(&format!(".{domain}"));
    if !is_own && !(options.span_hosts && (options.domains.is_empty() || options.domains.iter().any(in_domain))) {
        return false;
    }
    let folder = |root: &Url| root.path[..=root.path.rfind('/').unwrap_or(0)].to_owned();
    if options.no_parent && !is_requisite && !roots.iter().any(|root| url.path.starts_with(&folder(root))) {
        return false;
    }
    let below = |dir: &String| url.path.starts_with(&format!("/{}/", dir.trim_matches('/')));
    if !options.include_dirs.is_empty() && !options.include_dirs.iter().any(below)
        || options.exclude_dirs.iter().any(below)
    {
        return false;
    }
    // A page is fetched for its links, and removed if it does not fit.
    let may_lead_on = ["", "html", "htm"].contains(&ending(url.file_name()));
    may_lead_on || fits(options, url.file_name())
}

fn ending(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, end)| end)
}

/// Whether a file's name is one of `-A` and none of `-R`.
fn fits(options: &Options, name: &str) -> bool {
    let matches = |pattern: &String| match pattern.contains(['*', '?', '[']) {
        true => matches_pattern(pattern, name),
        false => name.ends_with(pattern.as_str()),
    };
    (options.accept.is_empty() || options.accept.iter().any(matches)) && !options.reject.iter().any(matches)
}

/// Matches `*` and `?`.
fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == '?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, from)) => {
                    *from += 1;
                    (p, n) = (*at + 1, *from);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// Whether the robots.txt of its host forbids a URL.
fn is_forbidden(client: &mut Client<'_>, known: &mut HashMap<String, Vec<String>>, url: &Url) -> bool {
    let authority = format!("{}://{}", url.scheme, url.authority());
    let rules = known.entry(authority).or_insert_with_key(|authority| {
        let url = Url::parse(&format!("{authority}/robots.txt")).ok();
        let text = url.and_then(|url| Some((client.text_of(&url)?, url)));
        let Some((text, url)) = text else { return Vec::new() };
        // GNU wget leaves it among the files of the site.
        let path = name::path_of(client.options, &url);
        if client.options.output.is_none() && fs::write(&path, &text).is_ok() {
            client.saved.push(Saved { url, path, content_type: String::new() });
        }
        disallowed(&text)
    });
    let path = url.target();
    rules.iter().any(|rule| path.starts_with(rule.as_str()))
}

/// The paths that a robots.txt forbids to wget, or to everybody.
fn disallowed(text: &str) -> Vec<String> {
    let (mut own, mut all) = (None::<Vec<String>>, Vec::new());
    let (mut is_own, mut is_all, mut in_names) = (false, false, false);
    for line in text.lines().take(10_000) {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some((field, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match field.trim().to_ascii_lowercase().as_str() {
            "user-agent" => {
                if !in_names {
                    (is_own, is_all) = (false, false);
                }
                in_names = true;
                is_own |= value.eq_ignore_ascii_case("wget");
                is_all |= value == "*";
                if is_own && own.is_none() {
                    own = Some(Vec::new());
                }
            }
            "disallow" => {
                in_names = false;
                if value.is_empty() {
                    continue;
                }
                if is_own && let Some(own) = &mut own {
                    own.push(value.to_owned());
                }
                if is_all {
                    all.push(value.to_owned());
                }
            }
            _ => in_names = false,
        }
    }
    own.unwrap_or(all)
}

/// Converts the links of the one file of a line without `-r`.
pub fn convert_single(client: &mut Client<'_>) {
    convert(&client.saved, client.options.adjust_extension);
}

/// Makes links lead to the files that were saved, and the others to their whole addresses.
fn convert(saved: &[Saved], quotes: bool) {
    let places: HashMap<String, &Path> = saved.iter().map(|saved| (key(&saved.url), saved.path.as_path())).collect();
    for file in saved {
        let Some(page) = page_of(file) else { continue };
        let Ok(text) = fs::read_to_string(&file.path) else { continue };
        let base = page.base.as_ref().and_then(|base| file.url.join(base).ok()).unwrap_or_else(|| file.url.clone());
        let (mut out, mut at) = (String::with_capacity(text.len()), 0);
        for link in page.links {
            if link.text.starts_with('#') || link.at.start < at || link.text.contains(':') && !link.text.contains("://")
            {
                continue;
            }
            let Ok(url) = base.join(&link.text) else { continue };
            let fragment = url.fragment.as_ref().map(|fragment| format!("#{fragment}")).unwrap_or_default();
            let new = match places.get(&key(&url)) {
                Some(place) => relative(&file.path, place, quotes) + &fragment,
                None => url.to_string(),
            };
            out.push_str(&text[at..link.at.start]);
            out.push_str(&new.replace('&', "&amp;").replace('"', "%22").replace('\'', "%27"));
            at = link.at.end;
        }
        out.push_str(&text[at..]);
        // The same as it was where it cannot be written.
        let _ = fs::write(&file.path, out);
    }
}

/// The way from one file to another, as a link. As in GNU wget, a question mark in a name is quoted only where names get `.html`.
fn relative(from: &Path, to: &Path, quotes: bool) -> String {
    let parts = |path: &Path| -> Vec<String> {
        let names = path.components().filter_map(|part| match part {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        names.collect()
    };
    let (from, to) = (parts(from.parent().unwrap_or(Path::new(""))), parts(to));
    let same = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = std::iter::repeat_n("..".to_owned(), from.len() - same);
    let encoded = |part: &String| {
        let part = part.replace('%', "%25").replace('#', "%23").replace(' ', "%20").replace(':', "%3A");
        if quotes { part.replace('?', "%3F") } else { part }
    };
    up.chain(to[same..].iter().map(encoded)).collect::<Vec<_>>().join("/")
}

/// Removes the pages that were fetched for their links alone.
fn remove_rejected(client: &mut Client<'_>) {
    let options = client.options;
    let rejected: Vec<PathBuf> = client
        .saved
        .iter()
        .filter(|saved| {
            options.delete_after || !fits(options, &saved.path.file_name().unwrap_or_default().to_string_lossy())
        })
        .map(|saved| saved.path.clone())
        .collect();
    for path in rejected.iter().filter(|_| options.output.is_none()) {
        let why = if options.delete_after { "" } else { " since it should be rejected" };
        client.log.verbose(&format!("Removing {}{why}.\n\n", path.display()));
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn robots_are_heard() {
        let text = "# all\nUser-agent: *\nDisallow: /private\nDisallow:\n\nUser-agent: other\nDisallow: /";
        assert_eq!(disallowed(text), ["/private"]);
        let own = format!("{text}\n\nUser-Agent: a\nUser-Agent: wget\nDisallow: /x # here\nAllow: /y");
        assert_eq!(disallowed(&own), ["/x"]);
        assert!(disallowed("<html>").is_empty());
    }

    #[test]
    fn names_are_accepted_and_rejected() {
        for (pattern, name, expected) in
            [("*.jp?g", "a.jpeg", true), ("a*b*c", "axxbxxc", true), ("a*b", "axc", false), ("*", "", true)]
        {
            assert_eq!(matches_pattern(pattern, name), expected, "{pattern} {name}");
        }
        let line = |words: &str| Options::parse(&words.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap();
        let options = line("-r -np -A png,b* -R x.png http://h/a/");
        let root = [Url::parse("http://h/a/").unwrap()];
        for (url, expected) in [
            ("http://h/a/1.png", true),
            ("http://h/a/x.png", false),
            ("http://h/a/1.gif", false),
            ("http://h/a/page.html", true),
            ("http://h/1.png", false),
            ("http://other/a/1.png", false),
            ("http://h:81/a/1.png", false),
            ("ftp://h/a/1.png", false),
        ] {
            assert_eq!(is_wanted(&options, &root, &Url::parse(url).unwrap(), false), expected, "{url}");
        }
    }

    #[test]
    fn links_become_ways_between_files() {
        for (from, to, expected) in [
            ("h/index.html", "h/a/b c.html", "a/b%20c.html"),
            ("h/a/b.html", "h/index.html?x=1", "../index.html%3Fx=1"),
            ("p/h:8/a.html", "p/h:8/b.html", "b.html"),
        ] {
            assert_eq!(relative(Path::new(from), Path::new(to), true), expected);
        }
    }
}
