//! `patch`: changes files as a unified diff says.

mod apply;
mod parse;

use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path};

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use apply::{Applied, Placed};
use parse::FilePatch;

const USAGE: &str = "Usage: patch [OPTION]... [FILE [PATCHFILE]]
Change files as a unified diff says, which is read from standard input or PATCHFILE.

  -p NUM  -d DIR  -i PATCHFILE    leave out so many directories of names, work in DIR, read this
  -R  -N  -f  -t                  take the change back, skip what is applied already, never ask
  -F NUM                          lines of context that may differ at either end (2)
  -o FILE  -r FILE  -b  -z SUFFIX write there, rejects there, keep the old file as FILE.orig
  -E  -s  --dry-run               delete what becomes empty, say nothing, only say what would be done
  --no-backup-if-mismatch
";

/// The exit code for an invalid patch or wrong use, as opposed to hunks that cannot be applied.
const TROUBLE: i32 = 2;

struct Options {
    strip: Option<usize>,
    reverse: bool,
    /// `-N`: a change that is there already is skipped without a question.
    forward: bool,
    /// `-f`: it is tried nevertheless.
    force: bool,
    /// `-t`: it is taken back.
    batch: bool,
    fuzz: usize,
    output: Option<String>,
    rejects: Option<String>,
    backup: bool,
    backup_if_mismatch: bool,
    suffix: String,
    delete_empty: bool,
    silent: bool,
    dry_run: bool,
    /// The one file that is changed, whatever the patch names.
    file: Option<String>,
    patch: String,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, TROUBLE, |parser| {
        let options = parse_options(parser)?;
        let bytes = cli::read(&options.patch)?;
        if bytes.is_empty() {
            return Ok(0);
        }
        let files = parse::parse(&bytes).map_err(|why| format!("**** {why}"))?;
        if options.file.is_some() && files.len() > 1 {
            return Err(format!("**** the patch changes {} files, and one file is named", files.len()).into());
        }
        let mut code = 0;
        for file in files {
            let file = if options.reverse { file.reversed() } else { file };
            code = code.max(one(&options, file)?);
        }
        Ok(code)
    })
}

fn parse_options(mut parser: lexopt::Parser) -> Result<Options, Error> {
    let mut options = Options {
        strip: None,
        reverse: false,
        forward: false,
        force: false,
        batch: false,
        fuzz: 2,
        output: None,
        rejects: None,
        backup: false,
        backup_if_mismatch: true,
        suffix: ".orig".into(),
        delete_empty: false,
        silent: false,
        dry_run: false,
        file: None,
        patch: "-".into(),
    };
    let mut directory = None;
    let mut operands = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Short('p') | Long("strip") => options.strip = Some(cli::number(&mut parser)?),
            Short('R') | Long("reverse") => options.reverse = true,
            Short('N') | Long("forward") => options.forward = true,
            Short('f') | Long("force") => options.force = true,
            Short('t') | Long("batch") => options.batch = true,
            Short('F') | Long("fuzz") => options.fuzz = cli::number(&mut parser)?,
            Short('o') | Long("output") => options.output = Some(cli::value(&mut parser)?),
            Short('r') | Long("reject-file") => options.rejects = Some(cli::value(&mut parser)?),
            Short('b') | Long("backup") => options.backup = true,
            Long("backup-if-mismatch") => options.backup_if_mismatch = true,
            Long("no-backup-if-mismatch") => options.backup_if_mismatch = false,
            Short('z') | Long("suffix") => options.suffix = cli::value(&mut parser)?,
            Short('E') | Long("remove-empty-files") => options.delete_empty = true,
            Short('s') | Long("silent" | "quiet") => options.silent = true,
            Long("dry-run") => options.dry_run = true,
            Short('d') | Long("directory") => directory = Some(cli::value(&mut parser)?),
            Short('i') | Long("input") => options.patch = cli::value(&mut parser)?,
            Short('u') | Long("unified" | "verbose") => {}
            Value(word) => operands.push(word.to_string_lossy().into_owned()),
            other => return Err(other.unexpected().into()),
        }
    }
    let mut operands = operands.into_iter();
    options.file = operands.next();
    if let Some(patch) = operands.next() {
        options.patch = patch;
    }
    if let Some(extra) = operands.next() {
        return Err(format!("{extra}: extra operand").into());
    }
    if let Some(directory) = directory {
        std::env::set_current_dir(&directory)
            .map_err(|e| format!("**** Can't change to directory {directory} : {}", cli::reason(&e)))?;
    }
    Ok(options)
}

/// Applies what belongs to one file.
fn one(options: &Options, mut patch: FilePatch) -> Result<i32, Error> {
    let Some(name) = target(options, &patch) else { return Ok(without_target(&patch)) };
    let renamed = patch.renames.then(|| stripped(options, patch.new.as_deref())).flatten().filter(|new| *new != name);
    let written = options.output.as_ref().or(renamed.as_ref()).unwrap_or(&name);
    let verb = if options.dry_run { "checking" } else { "patching" };
    if patch.binary {
        println!("File {name}: git binary diffs are not supported.");
        return Ok(1);
    }
    if !options.silent {
        let from = match (&options.output, &renamed) {
            (Some(_), _) => format!(" (read from {name})"),
            (None, Some(_)) => format!(" (renamed from {name})"),
            (None, None) => String::new(),
        };
        println!("{verb} file {written}{from}");
    }
    let there = fs::exists(&name)?;
    let before = if there { cli::read(&name)? } else { Vec::new() };
    let mut report = String::new();
    let mut skip = false;
    if patch.creates && !before.is_empty() && !patch.hunks.is_empty() {
        skip = already(options, &mut patch, &before, &mut report);
        if !skip && patch.creates {
            skip = true;
            report.push_str(&format!(
                "The next patch would create the file {name},\nwhich already exists!  Skipping patch.\n"
            ));
        }
    } else if let Some(hunk) = patch.hunks.first()
        && matches!(Applied::new(&before).hunk(hunk, options.fuzz), Placed::Failed { .. })
    {
        skip = already(options, &mut patch, &before, &mut report);
    }
    let count = patch.hunks.len();
    let (mut applied, mut rejected, mut failed, mut exact) = (Applied::new(&before), Vec::new(), 0, true);
    for (number, hunk) in patch.hunks.iter().enumerate() {
        if skip {
            failed += 1;
            applied.write_rejected(hunk, &mut rejected);
            continue;
        }
        match applied.hunk(hunk, options.fuzz) {
            Placed::At { fuzz: 0, offset: 0, .. } => {}
            Placed::At { line, fuzz, offset } => {
                exact = false;
                if !options.silent {
                    let _ = write!(report, "Hunk #{} succeeded at {line}", number + 1);
                    if fuzz > 0 {
                        let _ = write!(report, " with fuzz {fuzz}");
                    }
                    if offset != 0 {
                        let _ = write!(report, " (offset {offset} line{})", if offset == 1 { "" } else { "s" });
                    }
                    report.push_str(".\n");
                }
            }
            Placed::Failed { line } => {
                failed += 1;
                let _ = writeln!(report, "Hunk #{} FAILED at {line}.", number + 1);
                applied.write_rejected(hunk, &mut rejected);
            }
        }
    }
    print!("{report}");
    let after = applied.finish();
    let mut code = 0;
    let keep = options.backup || options.backup_if_mismatch && (!exact || failed > 0);
    if keep && !skip && !options.dry_run && options.output.is_none() {
        let old = format!("{name}{}", options.suffix);
        fs::write(&old, &before).map_err(cli::with_path(&old))?;
    }
    if failed < count || count == 0 {
        code = store(options, &patch, &name, written, (there, &after))?;
    }
    if failed > 0 {
        code = 1;
        let rejects = options.rejects.clone().unwrap_or_else(|| format!("{written}.rej"));
        let what = if skip { "ignored" } else { "FAILED" };
        let plural = if count == 1 { "" } else { "s" };
        let saving = match options.dry_run {
            true => String::new(),
            false => format!(" -- saving rejects to file {rejects}"),
        };
        println!("{failed} out of {count} hunk{plural} {what}{saving}");
        if !options.dry_run && rejects != "-" {
            let mut text = Vec::new();
            for name in [("---", &patch.old), ("+++", &patch.new)] {
                let shown = stripped(options, name.1.as_deref()).unwrap_or_else(|| "/dev/null".into());
                text.extend_from_slice(format!("{} {shown}\n", name.0).as_bytes());
            }
            text.extend(rejected);
            fs::write(&rejects, text).map_err(cli::with_path(&rejects))?;
        }
    }
    Ok(code)
}

/// Whether a patch of which the first hunk has no place is left out, because it is in the file already. It may be turned round.
fn already(options: &Options, patch: &mut FilePatch, before: &[u8], report: &mut String) -> bool {
    let Some(hunk) = patch.hunks.first() else { return false };
    if options.force || !Applied::new(before).fits(&hunk.clone().reversed()) {
        return false;
    }
    let (found, ask) = match options.reverse {
        true => ("Unreversed", "Ignore -R? [n]"),
        false => ("Reversed (or previously applied)", "Assume -R? [n]"),
    };
    let _ = write!(report, "{found} patch detected!");
    if options.forward {
        report.push_str("  Skipping patch.\n");
    } else if options.batch {
        report.push_str(if options.reverse { "  Ignoring -R.\n" } else { "  Assuming -R.\n" });
        *patch = std::mem::take(patch).reversed();
        return false;
    } else {
        // Nobody can answer here.
        let _ = writeln!(report, "  {ask} \nApply anyway? [n] \nSkipping patch.");
    }
    true
}

/// Writes what became of a file, and returns 1 if it was to be deleted and is not empty.
fn store(
    options: &Options,
    patch: &FilePatch,
    name: &str,
    written: &str,
    (there, after): (bool, &[u8]),
) -> Result<i32, Error> {
    let gone = after.is_empty() && (patch.deletes || options.delete_empty) && options.output.is_none();
    let differs = patch.deletes && !after.is_empty() && options.output.is_none();
    if differs {
        println!("Not deleting file {name} as content differs from patch");
    }
    if options.dry_run {
        return Ok(i32::from(differs));
    }
    if gone {
        if there {
            fs::remove_file(name).map_err(cli::with_path(name))?;
        }
        // As the file was the last one there, its directories go with it.
        let parents = Path::new(name).ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
        let _ = parents.map(fs::remove_dir).take_while(Result::is_ok).count();
        return Ok(0);
    }
    if let Some(parent) = Path::new(written).parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(cli::with_path(parent))?;
    }
    fs::write(written, after).map_err(cli::with_path(written))?;
    if written != name && options.output.is_none() {
        fs::remove_file(name).map_err(cli::with_path(name))?;
    }
    Ok(i32::from(differs))
}

/// The file that is changed: of the names of the patch the one that is there, or that is to be made.
fn target(options: &Options, patch: &FilePatch) -> Option<String> {
    if let Some(file) = &options.file {
        return Some(file.clone());
    }
    let old = stripped(options, patch.old.as_deref());
    let new = stripped(options, patch.new.as_deref());
    if patch.renames {
        return old;
    }
    let mut there: Vec<&String> = [&old, &new].into_iter().flatten().filter(|name| Path::new(name).is_file()).collect();
    // The one with the fewest directories, then the shortest.
    there.sort_by_key(|name| (name.split('/').count(), name.len()));
    match there.first() {
        Some(name) => Some((*name).clone()),
        None => new.or(old).filter(|_| patch.creates),
    }
}

/// The name without its first directories; nothing if it leads out of here.
fn stripped(options: &Options, name: Option<&str>) -> Option<String> {
    let name = name?;
    let stripped = match options.strip {
        None => name.rsplit('/').next()?,
        Some(0) => name,
        Some(count) => {
            let mut rest = name;
            for _ in 0..count {
                rest = rest.split_once('/')?.1.trim_start_matches('/');
            }
            rest
        }
    };
    let inside = Path::new(stripped).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !inside {
        println!("Ignoring potentially dangerous file name {stripped}");
    }
    (inside && !stripped.is_empty()).then(|| stripped.to_owned())
}

/// As nobody can be asked which file is meant, the part is left out.
fn without_target(patch: &FilePatch) -> i32 {
    println!("can't find file to patch at input line {}", patch.line + patch.header.len());
    println!("Perhaps you used the wrong -p or --strip option?");
    println!("The text leading up to this was:\n--------------------------");
    for line in &patch.header {
        println!("|{line}");
    }
    println!("--------------------------\nFile to patch: \nSkip this patch? [y] \nSkipping patch.");
    let count = patch.hunks.len();
    println!("{count} out of {count} hunk{} ignored", if count == 1 { "" } else { "s" });
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patched(before: &str, patch: &str) -> Vec<Placed> {
        let files = parse::parse(patch.as_bytes()).unwrap();
        let mut applied = Applied::new(before.as_bytes());
        files[0].hunks.iter().map(|hunk| applied.hunk(hunk, 2)).collect()
    }

    const CHANGE: &str = "--- a\n+++ b\n@@ -2,3 +2,3 @@\n two\n-three\n+3\n four\n";

    #[test]
    fn hunks_are_found_where_they_have_moved_to() {
        let at = |line, fuzz, offset| vec![Placed::At { line, fuzz, offset }];
        assert_eq!(patched("one\ntwo\nthree\nfour\n", CHANGE), at(2, 0, 0));
        assert_eq!(patched("zero\none\ntwo\nthree\nfour\n", CHANGE), at(3, 0, 1));
        assert_eq!(patched("two\nthree\nfour\n", CHANGE), at(1, 0, -1));
        assert_eq!(patched("one\n2\nthree\n4\n", CHANGE), at(2, 1, 0));
        assert_eq!(patched("one\ntwo\nfour\n", CHANGE), [Placed::Failed { line: 2 }]);
    }

    #[test]
    fn what_is_no_patch_is_an_error_that_says_where() {
        let error = |text: &str| parse::parse(text.as_bytes()).map(|files| files.len()).unwrap_err();
        assert_eq!(error("hello\n"), "Only garbage was found in the patch input.");
        assert_eq!(error("--- a\n+++ b\n@@ -1 +1 @@\n-a\nx\n"), "malformed patch at line 5: x");
        assert_eq!(
            error("--- a\n+++ b\n@@ -99999999999,1 +1 @@\n-a\n"),
            "malformed patch at line 3: @@ -99999999999,1 +1 @@"
        );
        assert!(error("--- a\n+++ b\n@@ -1,4294967295 +1 @@\n-a\n").contains("unexpected end of file"));
        assert!(error("*** a\n--- b\n***************\n").contains("diff -u"));
        assert!(error("2c2\n< a\n---\n> b\n").contains("diff -u"));
    }

    #[test]
    fn a_hunk_far_away_is_looked_for_where_lines_are() {
        let far = "--- a\n+++ b\n@@ -4294967295,1 +4294967295,1 @@\n-b\n+c\n";
        assert_eq!(patched("a\nb\n", far), [Placed::At { line: 2, fuzz: 0, offset: 2 - 4_294_967_295 }]);
    }
}
