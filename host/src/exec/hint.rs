//! What to do instead where a command is asked for that is not there.

use crate::package::Package;

/// By name; only asked for names that no command has.
const HINTS: &[(&[&str], &str)] = &[
    (&["bun", "deno", "node", "nodejs", "ts-node", "tsx"], "run JavaScript with `js FILE` or `js -e CODE`"),
    (&["npm", "npx", "pnpm", "yarn"], "there are no npm packages here; `js` runs plain JavaScript"),
    (&["aria2c", "curl", "http", "wget"], "commands have no network; use the skill `fetch`"),
    (
        &[
            "dig", "ftp", "host", "ifconfig", "ip", "nc", "netstat", "nslookup", "ping", "rsync", "scp", "sftp", "ss",
            "ssh", "telnet",
        ],
        "commands have no network; the skill `fetch` reads web addresses",
    ),
    (
        &["python", "python2", "python3"],
        "Python is not installed; an administrator adds it with `kiso package add python`; until then use `js`, `awk` or `jq`",
    ),
    (&["python3.10", "python3.11", "python3.12", "python3.13", "python3.14"], "use `python3`"),
    (
        &["pip", "pip3", "pipx", "uv"],
        "packages of Python cannot be installed here; it imports what lies in /work, and an administrator adds numpy, pandas, matplotlib and others with `kiso package add python-sci`",
    ),
    (&["lua", "perl", "php", "ruby"], "it is not included; use `js`, `awk` or `sed`"),
    (&["Rscript", "julia", "octave"], "it is not included; use `js`, `awk` or the skill `data`"),
    (&["gh", "glab"], "commands have no network; the skill `fetch` and MCP servers reach such services"),
    (
        &["libreoffice", "pandoc", "soffice"],
        "it is not included; with `kiso package add python-sci`, Python has openpyxl, pypdf, reportlab and lxml",
    ),
    (
        &["pdfimages", "pdfinfo", "pdftoppm", "pdftotext", "qpdf"],
        "it is not included; with `kiso package add python-sci`, Python has pypdf and reportlab",
    ),
    (
        &["convert", "ffmpeg", "identify", "magick"],
        "it is not included; with `kiso package add python-sci`, Python has Pillow and matplotlib",
    ),
    (&["py.test", "pytest"], "use `python3 -m unittest`"),
    (
        &["git"],
        "Git is not installed; an administrator adds it with `kiso package add git`; until then compare with `diff -ru` and keep copies with `cp -r`",
    ),
    (&["hg", "svn"], "it is not included; compare with `diff -ru` and keep copies with `cp -r`"),
    (&["cmake", "gmake", "make", "ninja"], "it is not included; run the commands of its rules with `sh`"),
    (
        &["c++", "cargo", "cc", "clang", "g++", "gcc", "go", "java", "javac", "rustc", "tsc"],
        "there are no compilers; write it for `js`, `awk` or `sh`",
    ),
    (&["doas", "su", "sudo"], "there are no other users here; run the command without it"),
    (&["chgrp", "chown"], "files have no owners here; leave it out"),
    (
        &["apk", "apt", "apt-get", "brew", "dnf", "dpkg", "flatpak", "pacman", "snap", "yum"],
        "packages cannot be installed here; an administrator adds commands with `kiso skill add FILE.wasm`",
    ),
    (&["docker", "kubectl", "podman"], "there are no containers here; run the command itself"),
    (
        &["crontab", "journalctl", "launchctl", "service", "systemctl"],
        "there are no services here; `kiso schedule` repeats a message",
    ),
    (
        &["ed", "emacs", "nano", "vi", "vim"],
        "nobody can type here; write with `cat > FILE <<'EOF'` or change with `sed -i`",
    ),
    (&["less", "man", "more"], "nobody can page here; use `cat`, `head` or `help COMMAND`"),
    (&["htop", "top", "watch"], "it would never end; use a loop with `sleep` and a count"),
    (
        &["pgrep", "pkill", "ps", "screen", "tmux"],
        "only this command line runs here; `jobs` lists what is in its background",
    ),
    (&["free", "lsblk", "mount"], "there are no devices here; `df -h` says what the workspace holds and may hold"),
    (&["mysql", "psql"], "there is no database here; use the skill `data` for tables, or `awk` and `jq`"),
    (
        &["sqlite3"],
        "it comes with Python, which an administrator adds with `kiso package add python`; for tables in CSV or JSON use the skill `data`",
    ),
    (
        &["csvcut", "csvgrep", "csvlook", "csvsql", "csvstat", "mlr", "qsv", "xsv"],
        "use the skill `data` for tables, or `awk`",
    ),
    (&["ack", "ag", "ripgrep"], "use `rg PATTERN`"),
    (&["fd", "fdfind", "locate"], "use `find . -name PATTERN`"),
    (&["bat", "batcat"], "use `cat`"),
    (&["exa", "eza", "lsd"], "use `ls` or `tree`"),
    (&["sdiff"], "use `diff -y`"),
    (&["dos2unix"], "use `sed -i 's/\\r$//' FILE`"),
    (&["envsubst"], "use `sed`, or a here-document in `sh`"),
    (&["getopt"], "use `getopts` in `sh`"),
    (&["parallel"], "use `xargs`"),
    (&["sponge"], "write to another file and `mv` it"),
    (&["mkfifo"], "use a pipe, or a file in /tmp"),
    (&["cal", "ncal"], "use `python3 -m calendar`"),
    (&["xmllint", "xmlstarlet"], "use `python3` and its module xml"),
    (&["stty", "tput"], "there is no terminal here; leave it out"),
    (&["dc"], "calculate with `bc`"),
    (&["7z", "unzstd", "zstd", "zstdcat"], "use `xz`, `gzip` or `zip`"),
    (&["yq"], "`jq` reads JSON; YAML is not read"),
    (&["open", "pbcopy", "xclip", "xdg-open"], "there is no desktop here; what is in /work/pub is published"),
];

/// What stands in the place of a command that is not there.
pub fn instead(name: &str) -> Option<&'static str> {
    HINTS.iter().find(|(names, _)| names.contains(&name)).map(|(_, hint)| *hint)
}

/// What there is not, for models, so that they need not try. `packages` are those that are installed.
pub fn missing(packages: &[&Package]) -> String {
    let is_there = |name: &str| packages.iter().any(|package| package.commands.contains(&name));
    let python = match (is_there("python3"), is_there("python3-sci")) {
        (false, _) => "python3 and sqlite3 (`kiso package add python` adds them), ",
        (true, false) => "numpy, pandas and matplotlib (`kiso package add python-sci` adds them), ",
        (true, true) => "",
    };
    let git = if is_there("git") { "" } else { "git (`kiso package add git` adds it), " };
    format!(
        "Not there: node (js runs JavaScript), curl and wget (use the skill fetch), {python}perl, {git}make, compilers, sudo, \
         package managers"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::embedded::COREUTILS_NAMES;

    #[test]
    fn a_hint_is_for_one_name_and_for_no_command() {
        let mut names: Vec<&str> = HINTS.iter().flat_map(|(names, _)| names.iter().copied()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "a name has two hints");
        let there: Vec<_> = names.iter().filter(|name| COREUTILS_NAMES.contains(name)).collect();
        assert!(there.is_empty(), "these are commands: {there:?}");
        assert!(HINTS.iter().all(|(names, hint)| names.is_sorted() && !hint.ends_with('.')));
    }

    #[test]
    fn hints_name_commands_that_there_are() {
        for (names, hint) in HINTS {
            for word in hint.split('`').skip(1).step_by(2).filter_map(|code| code.split_whitespace().next()) {
                let known = COREUTILS_NAMES.contains(&word)
                    || ["COMMAND", "data", "fetch", "getopts", "help", "jobs", "js", "kiso", "python3", "sh"]
                        .contains(&word);
                assert!(known, "{names:?}: {hint}");
            }
        }
    }

    #[test]
    fn models_are_told_which_package_has_what_is_missing() {
        let package = |name: &str| crate::package::find(name).expect("there is such a package");
        let (python, sci, git) = (package("python"), package("python-sci"), package("git"));
        let told = missing(&[]);
        assert!(told.contains("`kiso package add python` adds them") && !told.contains("numpy"), "{told}");
        let told = missing(&[python]);
        assert!(told.contains("`kiso package add python-sci` adds them") && !told.contains("python3 and"), "{told}");
        let told = missing(&[python, sci]);
        assert!(told.contains("git (`kiso package add git` adds it)") && !told.contains("add python"), "{told}");
        let told = missing(&[python, sci, git]);
        assert!(!told.contains("kiso package"), "{told}");
    }
}
