//! The embedded files of the page.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use data_encoding::HEXLOWER;
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{Context, SHA256};

use super::bundle::bundled;
use super::lean::lean;
use super::modules::Modules;

/// Names below `web/` with their contents.
macro_rules! embedded {
    ($( $name:literal, )*) => { &[$( ($name, include_bytes!(concat!("web/", $name))) ),*] };
}

/// Everything below `web/` except files that are only for people; a test compares this list with the folder.
const EMBEDDED: &[(&str, &[u8])] = embedded![
    "app.js",
    "base.css",
    "chat.css",
    "composer.css",
    "early.js",
    "icon-192.png",
    "icon-512.png",
    "icon.svg",
    "index.html",
    "kiso.webmanifest",
    "lib/ahead.js",
    "lib/api.js",
    "lib/approval.js",
    "lib/beside.js",
    "lib/blocks.js",
    "lib/call-body.js",
    "lib/chart-data.js",
    "lib/chart.js",
    "lib/chips.js",
    "lib/code.js",
    "lib/complete.js",
    "lib/composer.js",
    "lib/connect.js",
    "lib/csv.js",
    "lib/diff.js",
    "lib/drafts.js",
    "lib/events.js",
    "lib/folder-chooser.js",
    "lib/folder-sides.js",
    "lib/folders.js",
    "lib/form.js",
    "lib/format.js",
    "lib/gallery.js",
    "lib/grants.js",
    "lib/heal.js",
    "lib/highlight-worker.js",
    "lib/highlight.js",
    "lib/inline.js",
    "lib/install.js",
    "lib/keys.js",
    "lib/kinds.js",
    "lib/leaves.js",
    "lib/lightbox.js",
    "lib/log.js",
    "lib/markdown.js",
    "lib/math-signs.js",
    "lib/math.js",
    "lib/messages.js",
    "lib/models.js",
    "lib/modules.js",
    "lib/notify.js",
    "lib/pages.js",
    "lib/panel-views.js",
    "lib/panel.js",
    "lib/plain.js",
    "lib/plot.js",
    "lib/preact.js",
    "lib/reasoning.js",
    "lib/reply.js",
    "lib/router.js",
    "lib/run-calls.js",
    "lib/run-data.js",
    "lib/run-files.js",
    "lib/run-live.js",
    "lib/run-mark.js",
    "lib/run-output.js",
    "lib/run-task.js",
    "lib/run-text.js",
    "lib/run.js",
    "lib/said.js",
    "lib/search.js",
    "lib/selection.js",
    "lib/sessions.js",
    "lib/tags.js",
    "lib/terminal.js",
    "lib/timeline.js",
    "lib/trace-body.js",
    "lib/trace-diff.js",
    "lib/trace-load.js",
    "lib/trace-parts.js",
    "lib/trace-prompt.js",
    "lib/trace-runs.js",
    "lib/trace-step.js",
    "lib/trace-words.js",
    "lib/trace.js",
    "lib/trouble-card.js",
    "lib/turn.js",
    "lib/ui.js",
    "lib/undo.js",
    "lib/unsent.js",
    "lib/upload-folder.js",
    "lib/uploads.js",
    "lib/versions.js",
    "lib/welcome.js",
    "lib/when.js",
    "lib/workspace.js",
    "licenses.txt",
    "markdown.css",
    "screens/call.js",
    "screens/chat.js",
    "screens/connect.css",
    "screens/files.js",
    "screens/health.js",
    "screens/indexes.js",
    "screens/lists.css",
    "screens/login.js",
    "screens/memory.js",
    "screens/panel.css",
    "screens/pills.js",
    "screens/schedule.js",
    "screens/sessions.js",
    "screens/sites.js",
    "screens/skills.css",
    "screens/skills.js",
    "screens/trace.css",
    "screens/trace.js",
    "screens/usage.css",
    "screens/usage.js",
    "sessions.css",
    "vendor/highlight.js",
    "vendor/marked.js",
    "vendor/preact.js",
    "vendor/purify.js",
    "vendor/uplot.css",
    "vendor/uplot.js",
    "welcome/chart-dark.svg",
    "welcome/chart-light.svg",
    "welcome/weather.csv",
];

/// The file at `/`.
const INDEX: &str = "index.html";

/// Styles of all screens, in order. They are sent as one file, so that the page is never drawn with only some of them.
const STYLES: (&str, [&str; 6]) =
    ("style.css", ["base.css", "sessions.css", "chat.css", "composer.css", "vendor/uplot.css", "markdown.css"]);

/// Directory of libraries.
const VENDOR: &str = "vendor/";

/// A library that is a classic script instead of a module, and the name of its global variable.
const SCRIPT: (&str, &str) = ("vendor/uplot.js", "uPlot");

/// Placeholder in [`INDEX`] for the login.
const WHO: &str = "{{me}}";

/// Placeholder in [`INDEX`] for the base address of the other files.
const PLACE: &str = "{{page}}";

/// Number of digest bytes in the address, which are written in hex.
const DIGEST: usize = 8;

/// One version of the page; its files refer to each other.
#[derive(Debug)]
pub(super) struct Files {
    /// Digest of all names and contents.
    pub digest: String,
    pub index: Arc<File>,
    /// The document, with a placeholder for the login.
    document: String,
    rest: BTreeMap<String, Arc<File>>,
}

/// A file of the page.
#[derive(Debug)]
pub(super) struct File {
    pub media_type: &'static str,
    pub bytes: Bytes,
    /// Computed on first use; the inner `None` means that compression does not make it smaller.
    gzip: OnceLock<Option<Bytes>>,
}

impl Files {
    /// Returns the current files: the embedded ones or, in a debug build, those in the folder of `KISO_PAGE` if it is set, so
    /// that a change needs no build.
    pub(super) fn now() -> io::Result<Arc<Files>> {
        #[cfg(debug_assertions)]
        if let Some(folder) = std::env::var_os("KISO_PAGE").filter(|folder| !folder.is_empty()) {
            return Ok(Arc::new(Files::new(read(folder.as_ref())?, Scripts::AsWritten)));
        }
        static EMBEDDED_FILES: OnceLock<Arc<Files>> = OnceLock::new();
        let own = || EMBEDDED.iter().map(|(name, bytes)| ((*name).to_owned(), Bytes::from_static(bytes)));
        Ok(EMBEDDED_FILES.get_or_init(|| Arc::new(Files::new(own().collect(), Scripts::Together))).clone())
    }

    fn new(mut files: BTreeMap<String, Bytes>, scripts: Scripts) -> Files {
        let index = files.remove(INDEX).unwrap_or_default();
        let (name, parts) = STYLES;
        let styles: Vec<Bytes> = parts.iter().filter_map(|part| files.remove(*part)).collect();
        files.insert(name.to_owned(), styles.concat().into());
        let mut texts = scripts_of(&mut files);
        if scripts == Scripts::Together {
            texts = bundled(&texts);
        }
        files.extend(texts.iter().map(|(name, text)| (name.clone(), Bytes::from(text.clone()))));
        let digest = digest(&index, &files);
        let base = format!("/page/{digest}");
        let document = String::from_utf8_lossy(&index).replace(PLACE, &base);
        let document = Modules::new(&texts).written(&document, &base);
        let index = Arc::new(File::new(INDEX, document.replace(WHO, "").into()));
        let rest = files.into_iter().map(|(name, bytes)| {
            let file = Arc::new(File::new(&name, bytes));
            (name, file)
        });
        Files { digest, index, document, rest: rest.collect() }
    }

    /// Returns the document with the login as JSON.
    pub(super) fn index_for(&self, who: &str) -> Arc<File> {
        // Escaped, so that no text can end the script element.
        Arc::new(File::new(INDEX, self.document.replace(WHO, &who.replace('<', "\\u003c")).into()))
    }

    /// Returns the file of this name; the document is not included.
    pub(super) fn get(&self, name: &str) -> Option<Arc<File>> {
        self.rest.get(name).cloned()
    }
}

/// Returns the digest of everything that is sent, as it is sent: another bundling has another address.
fn digest(index: &[u8], files: &BTreeMap<String, Bytes>) -> String {
    let mut context = Context::new(&SHA256);
    let all = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).chain([(INDEX, index)]);
    for (name, bytes) in all {
        // Includes the lengths, so that content cannot move between files without changing the digest.
        for part in [name.as_bytes(), bytes] {
            context.update(&(part.len() as u64).to_le_bytes());
            context.update(part);
        }
    }
    HEXLOWER.encode(&context.finish().as_ref()[..DIGEST])
}

/// How scripts are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scripts {
    /// As in the source, for development.
    #[cfg_attr(not(any(test, debug_assertions)), expect(dead_code, reason = "there is no folder to serve"))]
    AsWritten,
    /// Bundled.
    Together,
}

/// Removes and returns the project's scripts. Libraries are sent unchanged, with the comments that their licenses require.
fn scripts_of(files: &mut BTreeMap<String, Bytes>) -> BTreeMap<String, String> {
    let names: Vec<String> = files.keys().filter(|name| name.ends_with(".js")).cloned().collect();
    let mut scripts = BTreeMap::new();
    for name in names {
        let Ok(text) = String::from_utf8(files[&name].to_vec()) else { continue };
        let text = match name.as_str() {
            name if name == SCRIPT.0 => format!("{text}\nexport {{ {} as default }};\n", SCRIPT.1),
            name if name.starts_with(VENDOR) => text,
            _ => lean(&text),
        };
        files.remove(&name);
        scripts.insert(name, text);
    }
    scripts
}

impl File {
    fn new(name: &str, bytes: Bytes) -> File {
        File { media_type: media_type(name).unwrap_or("application/octet-stream"), bytes, gzip: OnceLock::new() }
    }

    /// Returns the smallest form of the file, and whether it is gzip. Takes a moment the first time.
    pub(super) fn gzip(&self) -> (Bytes, bool) {
        let zipped = self.gzip.get_or_init(|| zip(&self.bytes).ok().filter(|zipped| zipped.len() < self.bytes.len()));
        zipped.clone().map_or_else(|| (self.bytes.clone(), false), |zipped| (zipped, true))
    }
}

fn zip(bytes: &[u8]) -> io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?.into())
}

fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "txt" => "text/plain; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

/// Returns whether a file below `web/` is served; the list of the libraries' origins is not.
#[cfg(any(test, debug_assertions))]
fn is_served(name: &str) -> bool {
    name != "vendor/manifest.json" && media_type(name).is_some()
}

/// Returns the served files of a folder, by their names relative to it.
#[cfg(any(test, debug_assertions))]
fn read(folder: &std::path::Path) -> io::Result<BTreeMap<String, Bytes>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap_or(&path).to_string_lossy().into_owned();
            if is_served(&name) {
                found.insert(name, std::fs::read(&path)?.into());
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::bundle::path;
    use super::*;

    #[test]
    fn the_list_names_every_file_of_the_folder() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/web");
        let in_folder: Vec<String> = read(&folder).unwrap().into_keys().collect();
        let listed: Vec<&str> = EMBEDDED.iter().map(|(name, _)| *name).collect();
        assert_eq!(in_folder, listed, "EMBEDDED in gateway/page/files.rs has a line for each, by name");
    }

    #[test]
    fn every_change_changes_the_digest() {
        let of = |files: &[(&str, &'static str)]| {
            let files = files.iter().map(|(name, text)| (name.to_string(), Bytes::from(*text)));
            Files::new(files.collect(), Scripts::AsWritten)
        };
        let one = of(&[("a.js", "bc"), ("index.html", "<{{page}}/a.js {{page}}>")]);
        assert_eq!(one.index.bytes, format!("</page/{0}/a.js /page/{0}>", one.digest));
        assert_eq!((one.digest.len(), one.get("a.js").unwrap().bytes.as_ref()), (16, &b"bc"[..]));
        assert!(one.get(INDEX).is_none());
        for other in [
            &[("a.js", "bd"), ("index.html", "<{{page}}/a.js {{page}}>")][..],
            &[("a.jsb", "c"), ("index.html", "<{{page}}/a.js {{page}}>")],
            &[("a.js", "bc"), ("index.html", "")],
            &[("a.js", "bc")],
        ] {
            assert_ne!(of(other).digest, one.digest, "{other:?}");
        }
    }

    /// Everything that is removed from a script is a comment in this project's style.
    #[test]
    fn only_comments_are_taken_out() {
        for (name, bytes) in EMBEDDED.iter().filter(|(name, _)| name.ends_with(".js") && !name.starts_with(VENDOR)) {
            let script = std::str::from_utf8(bytes).unwrap();
            let kept = lean(script);
            assert_eq!(kept.lines().count(), script.lines().count(), "{name}");
            for (line, kept) in script.lines().zip(kept.lines()).filter(|(line, kept)| line != kept) {
                let text = line.trim();
                let comment = ["// ", "/** ", "* "].iter().any(|begin| text.starts_with(begin))
                    || ["//", "/**", "*/", "*"].contains(&text);
                assert!(kept.is_empty() && comment, "{name}: {line}");
            }
        }
    }

    /// Every module is sent once, after its imports, and the result contains no imports or exports.
    #[test]
    fn every_script_can_be_put_together() {
        let mut files = EMBEDDED.iter().map(|(name, bytes)| ((*name).to_owned(), Bytes::from_static(bytes))).collect();
        let scripts = scripts_of(&mut files);
        let sent = bundled(&scripts);
        // Workers.
        let alone = ["lib/highlight-worker.js", "vendor/highlight.js"];
        for name in alone {
            assert_eq!(sent[name], scripts[name]);
        }
        let scope = |name: &str| name.trim_end_matches(".js").replace(['/', '-'], "_");
        let begin = |name: &str| format!("const ${} = (() => {{\n", scope(name));
        let own: Vec<&String> = scripts.keys().filter(|name| !alone.contains(&name.as_str())).collect();
        for name in &own {
            let of_this_house = !name.starts_with(VENDOR);
            for line in scripts[*name].lines().filter(|_| of_this_house) {
                let exports = line.strip_prefix("export ").unwrap_or("{");
                let known = ["const ", "function ", "async function ", "class ", "default ", "{"];
                assert!(known.iter().any(|begin| exports.starts_with(begin)), "{name}: {line}");
                assert!(!line.starts_with("await "), "{name}: {line}");
            }
            let within: Vec<&String> = sent.values().filter(|text| text.contains(&begin(name))).collect();
            assert_eq!(within.len(), 1, "{name}");
            let (before, _) = within[0].split_once(&begin(name)).unwrap();
            let needs =
                own.iter().filter(|need| scripts[*name].contains(&format!("/{}'", need.rsplit('/').next().unwrap())));
            for need in needs.filter(|need| scripts[*name].contains(&format!("from '{}'", path(name, need)))) {
                assert!(before.contains(&format!("${}", scope(need))), "{name} stands before {need}, which it needs");
            }
        }
        for (name, text) in sent.iter().filter(|(name, _)| !alone.contains(&name.as_str())) {
            let head = text.lines().take_while(|line| line.starts_with("import {")).count();
            let count = text.lines().count();
            for (at, line) in text.lines().enumerate().skip(head) {
                let left = line.starts_with("import ") || line.starts_with("export ");
                assert!(!left || at + 1 == count, "{name}:{}: {line}", at + 1);
            }
        }
    }

    #[test]
    fn what_does_not_shrink_is_sent_as_it_is() {
        let text = File::new("a.js", "0123456789".repeat(100).into());
        assert!(text.gzip().1 && text.gzip().0.len() < 100);
        let short = File::new("a.js", "x".into());
        assert_eq!(short.gzip(), ("x".into(), false));
    }
}
