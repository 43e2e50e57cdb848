//! Hints for commands that do not exist: what to use instead.

use crate::package::{self, Package};
use std::sync::Arc;

/// A hint for a command that is missing: the first of `ways` whose command or skill is installed, else `otherwise`.
struct Hint {
    names: &'static [&'static str],
    ways: &'static [(&'static str, &'static str)],
    otherwise: &'static str,
}

const fn hint(names: &'static [&'static str], otherwise: &'static str) -> Hint {
    Hint { names, ways: &[], otherwise }
}

const fn ways(
    names: &'static [&'static str],
    ways: &'static [(&'static str, &'static str)],
    otherwise: &'static str,
) -> Hint {
    Hint { names, ways, otherwise }
}

/// The command with Python's libraries for science and documents.
const SCIENCE: &str = "python3-sci";

/// Sorted by name. Looked up only if no command has the name.
const HINTS: &[Hint] = &[
    hint(&["bun", "deno"], "run JavaScript with `node FILE` or `node -e CODE`"),
    hint(&["ts-node", "tsx"], "run TypeScript with `node FILE.ts`; types are not checked"),
    hint(
        &["pnpm", "yarn"],
        "use `npm`, which installs packages of pure JavaScript and runs the scripts of package.json",
    ),
    hint(
        &["vercel"],
        "it is not included; a push deploys a project that is connected, or use `curl` with the service's API",
    ),
    hint(&["claude", "codex", "gemini"], "a model is not started from here; ask for a subagent instead"),
    hint(&["dot", "neato"], "it is not included; Mermaid or SVG can be written as text"),
    ways(
        &["pdftk"],
        &[(SCIENCE, "use `python3` with pypdf, which merges, splits, turns and fills PDF files")],
        "it is not included; with `kiso skill add python-sci`, Python has pypdf",
    ),
    hint(&["aria2c", "http", "httpie", "lynx", "w3m"], "use `curl` or `wget`, or the skill `fetch` for pages as text"),
    hint(
        &[
            "dig", "ftp", "host", "ifconfig", "ip", "nc", "netstat", "nslookup", "ping", "rsync", "scp", "sftp", "ss",
            "ssh", "telnet",
        ],
        "commands have no network; the skill `fetch` reads web addresses",
    ),
    hint(
        &["python", "python2", "python3"],
        "Python is not installed; an administrator adds it with `kiso skill add python`; until then use `js`, `awk` or `jq`",
    ),
    ways(
        &["python3.10", "python3.11", "python3.12", "python3.13", "python3.14", "python3.15"],
        &[("python3", "use `python3`")],
        "Python is not installed; an administrator adds it with `kiso skill add python`",
    ),
    ways(
        &["conda", "pip", "pip3", "pipx", "poetry", "uv", "virtualenv"],
        &[("pip", "use `pip install`, which installs packages of pure Python for this conversation")],
        "Python is not installed; an administrator adds it, with pip, with `kiso skill add python`, and numpy, pandas, matplotlib and others with `kiso skill add python-sci`",
    ),
    ways(
        &["perl"],
        &[("python3", "it is not installed; use `python3`, `js`, `awk` or `sed`")],
        "Perl is not installed; an administrator adds it with `kiso skill add perl`; until then use `js`, `awk` or `sed`",
    ),
    ways(
        &["erb", "irb", "rake", "ruby"],
        &[("ruby", "use `ruby`"), ("python3", "it is not installed; use `python3` or `js`")],
        "Ruby is not installed; an administrator adds it with `kiso skill add ruby`; until then use `js` or `awk`",
    ),
    ways(
        &["inkscape", "rsvg-convert"],
        &[("resvg", "use `resvg IN.svg OUT.png`")],
        "it is not included; an administrator adds resvg, which renders SVG as PNG, with `kiso skill add resvg`",
    ),
    ways(
        &["lua", "php"],
        &[("python3", "it is not included; use `python3`, `js`, `awk` or `sed`")],
        "it is not included; use `js`, `awk` or `sed`",
    ),
    ways(
        &["Rscript", "julia", "octave"],
        &[(SCIENCE, "it is not included; use `python3` with numpy, scipy and pandas")],
        "it is not included; use `js`, `awk` or the skill `data`",
    ),
    hint(&["gh", "glab"], "it is not included; use `curl` with the service's API, or an MCP server"),
    ways(
        &["unoconv"],
        &[
            ("document", "use `soffice --convert-to`"),
            (SCIENCE, "it is not included; use `python3` with openpyxl, pypdf, reportlab and lxml"),
        ],
        "it is not included; with `kiso skill add python-sci`, Python has openpyxl, pypdf, reportlab and lxml",
    ),
    ways(
        &["odt2txt"],
        &[
            ("document", "use `document`"),
            ("python3", "an .odt is a zip archive: read content.xml in it with `python3`"),
        ],
        "an .odt is a zip archive: `unzip -p FILE content.xml` prints its text with its tags",
    ),
    ways(
        &["in2csv"],
        &[("document", "use `document`, or the skill `data`"), (SCIENCE, "use `python3` with openpyxl")],
        "an .xlsx is a zip archive, see `unzip -l`; with `kiso skill add python-sci`, Python has openpyxl",
    ),
    ways(
        &["pdfimages", "qpdf"],
        &[("document", "use `document`"), (SCIENCE, "use `python3` with pypdf and reportlab")],
        "it is not included; with `kiso skill add python-sci`, Python has pypdf and reportlab",
    ),
    hint(&["ffmpeg", "ffprobe", "sox"], "there is nothing for sound and video here"),
    hint(&["tesseract"], "no command reads the text of a scan; a model with eyes reads it in the picture"),
    hint(
        &["chrome", "chromium", "firefox", "google-chrome"],
        "there is no browser here; the skill `fetch` reads web pages",
    ),
    ways(
        &["fc-list", "fc-match"],
        &[("document", "no fonts are installed; `document` and the skill `chart` have their own")],
        "no fonts are installed; the skill `chart` has its own",
    ),
    ways(&["py.test", "pytest"], &[("pip", "`pip install pytest` installs it")], "Python is not installed"),
    hint(
        &["git"],
        "Git is not installed; an administrator adds it with `kiso skill add git`; until then compare with `diff -ru` and keep copies with `cp -r`",
    ),
    ways(
        &["hg", "svn"],
        &[("git", "it is not included; use `git`")],
        "it is not included; compare with `diff -ru` and keep copies with `cp -r`",
    ),
    hint(&["cmake", "gmake", "make", "ninja"], "it is not included; run the commands of its rules with `sh`"),
    ways(
        &["c++", "cc", "clang", "g++", "gcc"],
        &[("cc", "use `cc`"), ("python3", "there are no compilers; write it for `python3`, `js`, `awk` or `sh`")],
        "there are no compilers; write it for `js`, `awk` or `sh`",
    ),
    ways(
        &["cargo", "go", "java", "javac", "rustc", "tsc"],
        &[("python3", "there are no compilers; write it for `python3`, `js`, `awk` or `sh`")],
        "there are no compilers; write it for `js`, `awk` or `sh`",
    ),
    hint(&["doas", "su", "sudo"], "there are no other users here; run the command without it"),
    hint(&["chgrp", "chown"], "files have no owners here; leave it out"),
    hint(
        &["apk", "apt", "apt-get", "brew", "dnf", "dpkg", "flatpak", "pacman", "snap", "yum"],
        "packages cannot be installed here; an administrator adds commands with `kiso skill add FILE.wasm`",
    ),
    hint(&["docker", "kubectl", "podman"], "there are no containers here; run the command itself"),
    hint(
        &["crontab", "journalctl", "launchctl", "service", "systemctl"],
        "there are no services here; `kiso schedule` repeats a message",
    ),
    hint(
        &["ed", "emacs", "nano", "vi", "vim"],
        "interactive editors are not available; write with `cat > FILE <<'EOF'` or change with `sed -i`",
    ),
    hint(&["less", "man", "more"], "nobody can page here; use `cat`, `head` or `help COMMAND`"),
    hint(&["htop", "top", "watch"], "it would never end; use a loop with `sleep` and a count"),
    hint(
        &["pgrep", "pkill", "ps", "screen", "tmux"],
        "only this command line runs here; `jobs` lists what is in its background",
    ),
    hint(&["free", "lsblk", "mount"], "there are no devices here; `df -h` says what the workspace holds and may hold"),
    ways(
        &["mysql", "psql"],
        &[("sqlite3", "there is no database server here; use `sqlite3`, or the skill `data` for tables")],
        "there is no database here; use the skill `data` for tables, or `awk` and `jq`",
    ),
    hint(
        &["sqlite3"],
        "it comes with Python, which an administrator adds with `kiso skill add python`; for tables in CSV or JSON use the skill `data`",
    ),
    hint(
        &["csvcut", "csvgrep", "csvlook", "csvsql", "csvstat", "mlr", "qsv", "xsv"],
        "use the skill `data` for tables, or `awk`",
    ),
    hint(&["ack", "ag", "ripgrep"], "use `rg PATTERN`"),
    hint(&["fd", "fdfind", "locate"], "use `find . -name PATTERN`"),
    hint(&["bat", "batcat"], "use `cat`"),
    hint(&["exa", "eza", "lsd"], "use `ls` or `tree`"),
    hint(&["sdiff"], "use `diff -y`"),
    hint(&["dos2unix"], "use `sed -i 's/\\r$//' FILE`"),
    hint(&["envsubst"], "use `sed`, or a here-document in `sh`"),
    hint(&["getopt"], "use `getopts` in `sh`"),
    hint(&["parallel"], "use `xargs`"),
    hint(&["sponge"], "write to another file and `mv` it"),
    hint(&["mkfifo"], "use a pipe, or a file in /tmp"),
    ways(&["cal", "ncal"], &[("python3", "use `python3 -m calendar`")], "calculate dates with `date -d`"),
    ways(
        &["xmllint", "xmlstarlet"],
        &[(SCIENCE, "use `python3` with lxml"), ("python3", "use `python3` and its module xml")],
        "it is not included; use `grep -o`, `sed` or `awk`",
    ),
    hint(&["stty", "tput"], "there is no terminal here; leave it out"),
    hint(&["dc"], "calculate with `bc`"),
    hint(
        &["7z", "7za", "rar", "unrar", "unzstd", "zstd", "zstdcat"],
        "archives of that kind are neither read nor made here; there are `tar`, `zip`, `unzip`, `gzip`, `bzip2` and `xz`",
    ),
    hint(&["ar", "cpio"], "use `tar`"),
    hint(&["zipinfo"], "use `unzip -l` or `unzip -Z1`"),
    hint(&["shasum"], "use `sha256sum` or `sha1sum`"),
    hint(&["md5"], "use `md5sum`"),
    hint(&["uuidgen"], "use `od -An -N16 -tx1 /dev/urandom`"),
    hint(&["prename", "rename"], "use a loop of `sh` with `mv`"),
    hint(
        &["gcp", "gdate", "gfind", "ggrep", "gls", "gsed", "gtar", "gxargs"],
        "leave the g out: commands here are as GNU's",
    ),
    hint(&["gdb", "lsof", "ltrace", "strace"], "nothing here looks into a process"),
    hint(&["flock"], "nothing else runs here meanwhile; leave it out"),
    hint(&["lscpu", "uptime"], "`nproc` says how many processors there are"),
    ways(
        &["black", "flake8", "mypy", "pylint", "ruff"],
        &[("python3", "it is not included; `python3 -m py_compile FILE` checks the syntax")],
        "Python is not installed; an administrator adds it with `kiso skill add python`",
    ),
    ways(&["yq"], &[(SCIENCE, "read YAML with `python3` and its module yaml")], "`jq` reads JSON; YAML is not read"),
    hint(&["open", "pbcopy", "xclip", "xdg-open"], "there is no desktop here; the user gets what is in /work/pub"),
];

/// Returns the hint for a missing command. `is_there` tells whether a command or skill is installed.
pub fn instead(name: &str, is_there: impl Fn(&str) -> bool) -> Option<&'static str> {
    let hint = HINTS.iter().find(|hint| hint.names.contains(&name))?;
    let way = hint.ways.iter().find(|(needed, _)| is_there(needed));
    Some(way.map_or(hint.otherwise, |(_, way)| way))
}

/// Commands for documents and pictures, for models. The description of the tool `exec` names those that reach hosts.
const DOCUMENTS: &str = "pdftotext, pandoc (makes PDF, DOCX), csv2xlsx, convert";

/// Describes to models the commands beside the usual ones, and those that are missing. `packages` are the installed ones.
pub fn commands(packages: &[Arc<Package>]) -> String {
    let known = package::bundled();
    let rank = |package: &Package| known.iter().position(|folder| folder.package.name == package.name);
    // If two packages have the same command, only one can be started.
    let has =
        |name: &str| packages.iter().filter(|package| package.has_command(name)).max_by_key(|package| rank(package));
    let is_reached = |of: &Package, name: &str| has(name).is_some_and(|first| first.name == of.name);
    let lines = packages.iter().flat_map(|of| of.model_lines().filter(|(name, _)| is_reached(of, name)));
    let there = lines.map(|(_, line)| line.to_owned());
    let also = [DOCUMENTS.to_owned()].into_iter().chain(there).collect::<Vec<_>>().join(", ");
    let suggested =
        known.iter().filter_map(|folder| Some((folder.package.spec.suggested.as_deref()?, &folder.package.name)));
    let missing = suggested.filter(|(name, _)| has(name).is_none());
    let missing = missing.map(|(name, package)| format!("{name} (`kiso skill add {package}`)"));
    let never = [("perl", "perl"), ("make", "make"), ("cc", "compilers")];
    let never = never.into_iter().filter(|(name, _)| has(name).is_none()).map(|(_, named)| named.to_owned());
    format!("Also {also}. Not there: {}.", missing.chain(never).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::embedded::COREUTILS_NAMES;

    /// The commands and skills that hints name.
    const KNOWN: [&str; 19] = [
        "COMMAND", "cc", "chart", "curl", "data", "document", "fetch", "getopts", "git", "help", "image", "jobs", "js",
        "kiso", "node", "npm", "sh", "soffice", "wget",
    ];

    #[test]
    fn a_hint_is_for_one_name_and_for_no_command() {
        let mut names: Vec<&str> = HINTS.iter().flat_map(|hint| hint.names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name has two hints");
        let others = super::super::commands::further_names();
        let there: Vec<_> =
            names.iter().filter(|name| COREUTILS_NAMES.contains(name) || others.contains(name)).collect();
        assert!(there.is_empty(), "these are commands: {there:?}");
        let texts = HINTS.iter().flat_map(|hint| hint.ways.iter().map(|(_, text)| *text).chain([hint.otherwise]));
        assert!(HINTS.iter().all(|hint| hint.names.is_sorted()) && texts.into_iter().all(|text| !text.ends_with('.')));
    }

    #[test]
    fn hints_name_commands_that_there_are() {
        let leads = |text: &str, also: &[&str]| {
            for word in text.split('`').skip(1).step_by(2).filter_map(|code| code.split_whitespace().next()) {
                let known = COREUTILS_NAMES.contains(&word) || KNOWN.contains(&word) || also.contains(&word);
                assert!(known, "{text}");
            }
        };
        for hint in HINTS {
            // A command that may be missing needs a condition.
            let optional = ["cc", "document", "git", "python3", "sqlite3"];
            let named: Vec<_> = optional.iter().filter(|name| hint.otherwise.contains(&format!("`{name}"))).collect();
            assert!(named.is_empty(), "{:?} leads to {named:?}, which may not be there", hint.names);
            leads(hint.otherwise, &[]);
            hint.ways.iter().for_each(|(needed, way)| leads(way, &[needed, "python3"]));
        }
    }

    /// Names that models type, with the hint if the alternative is installed and the hint if it is not.
    #[test]
    fn a_hint_leads_to_what_is_there() {
        let all = ["document", "cc", "pip", "python3", "python3-sci", "resvg", "ruby", "sqlite3", "git"];
        for (name, with, without) in [
            ("tesseract", "model with eyes", "model with eyes"),
            ("odt2txt", "`document`", "unzip"),
            ("in2csv", "`document`", "python-sci"),
            ("qpdf", "`document`", "python-sci"),
            ("unoconv", "`soffice", "python-sci"),
            ("chromium", "no browser", "no browser"),
            ("ffmpeg", "sound and video", "sound and video"),
            ("fc-list", "`document`", "`chart`"),
            ("yq", "module yaml", "YAML is not read"),
            ("gcc", "`cc`", "no compilers"),
            ("perl", "`python3`", "skill add perl"),
            ("irb", "`ruby`", "skill add ruby"),
            ("rsvg-convert", "`resvg IN.svg OUT.png`", "skill add resvg"),
            ("7z", "neither read nor made", "`tar`"),
            ("unrar", "neither read nor made", "`unzip`"),
            ("shasum", "`sha256sum`", "`sha256sum`"),
            ("gsed", "leave the g out", "leave the g out"),
            ("conda", "`pip install`", "python-sci"),
            ("ruff", "py_compile", "not installed"),
        ] {
            let told = instead(name, |wanted| all.contains(&wanted)).expect("there is a hint");
            assert!(told.contains(with) && !told.contains("kiso skill add"), "{name}: {told}");
            let told = instead(name, |_| false).expect("there is a hint");
            assert!(told.contains(without), "{name}: {told}");
        }
        assert!(instead("unoconv", |wanted| wanted == SCIENCE).is_some_and(|told| told.contains("reportlab")));
    }

    #[test]
    fn models_are_told_what_is_there_once_and_what_is_not() {
        let package = |name: &str| crate::package::find(name).expect("there is such a package").package.clone();
        let (python, sci, git) = (package("python"), package("python-sci"), package("git"));
        let told = commands(&[]);
        assert!(told.contains(", convert. Not there: git (`kiso skill add git`), python3 ("), "{told}");
        let told = commands(&[git.clone(), python.clone()]);
        assert!(
            told.contains("python3 3.12") && told.contains(", git, ") && told.contains("sqlite3. Not there: perl"),
            "{told}"
        );
        let told = commands(&[git, python, sci]);
        assert_eq!(told.matches("python3").count(), 1, "{told}");
        assert!(["pypdf", "openpyxl", "reportlab", "PyYAML"].iter().all(|library| told.contains(library)), "{told}");
        assert!(told.contains("sqlite3") && !told.contains("kiso package") && !told.contains("and more"), "{told}");
    }
}
