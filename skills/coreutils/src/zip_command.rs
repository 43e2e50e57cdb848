//! `zip` and `unzip`.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, Write};
use std::path::Path;

use lexopt::Arg::{Long, Short, Value};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::archive;
use crate::cli::{self, Error};
use crate::glob;

const ZIP: &str = "Usage: zip [-rjqDymu] [-0..-9] [-x GLOB]... [-i GLOB]... ARCHIVE[.zip]|- FILE...
Pack files; those of the same name in an archive that is there are replaced. `-` writes the archive to standard output.

  -r  with what is in directories      -j  without the names of directories
  -D  no entries for directories       -y  links as links
  -u  only what is newer than in the archive    -m  delete what was packed
";

#[derive(Default)]
struct Packing {
    recursive: bool,
    junk: bool,
    quiet: bool,
    no_directories: bool,
    links: bool,
    newer: bool,
    moves: bool,
    level: i64,
}

/// A file to pack: where it is, its name in the archive, and what it is.
struct Packed {
    path: String,
    name: String,
    kind: std::fs::FileType,
}

pub fn zip(arguments: Vec<String>) -> i32 {
    cli::run(arguments, ZIP, 15, |mut parser| {
        let mut packing = Packing { level: 6, ..Packing::default() };
        let (mut exclude, mut include, mut operands) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(argument) = parser.next()? {
            match argument {
                Short('r') => packing.recursive = true,
                Short('j') => packing.junk = true,
                Short('q') => packing.quiet = true,
                Short('D') => packing.no_directories = true,
                Short('y') => packing.links = true,
                Short('u') => packing.newer = true,
                Short('m') => packing.moves = true,
                Short(digit @ '0'..='9') => packing.level = i64::from(digit.to_digit(10).unwrap_or(6)),
                Short('x') => globs(&mut parser, &mut exclude)?,
                Short('i') => globs(&mut parser, &mut include)?,
                // Nothing more than names, times and content is kept anyway, and what is written can be read.
                Short('X' | 'v' | 'T') => {}
                Value(operand) => operands.push(operand.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if operands.len() < 2 {
            return Err("an archive and files are needed".into());
        }
        let mut target = operands.remove(0);
        if target != "-" && !Path::new(&target).file_name().unwrap_or_default().to_string_lossy().contains('.') {
            target.push_str(".zip");
        }
        let mut files = Vec::new();
        for operand in &operands {
            if std::fs::symlink_metadata(operand).is_err() {
                eprintln!("zip warning: name not matched: {operand}");
                continue;
            }
            let depth = if packing.recursive { usize::MAX } else { 0 };
            let walk = walkdir::WalkDir::new(operand).max_depth(depth).sort_by_file_name();
            for entry in walk.follow_links(!packing.links).follow_root_links(!packing.links) {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(e) => {
                        let shown = e.path().unwrap_or(operand.as_ref()).display().to_string();
                        eprintln!("zip warning: could not read {shown}: {}", cli::reason(&e.into()));
                        continue;
                    }
                };
                let path = entry.path().to_string_lossy().into_owned();
                let name = path.trim_start_matches("./").trim_start_matches('/').to_owned();
                let fits = |globs: &[String]| globs.iter().any(|pattern| glob::fits(pattern, &name, false));
                let (kind, is_dir) = (entry.file_type(), entry.file_type().is_dir());
                let left_out = is_dir && (packing.junk || packing.no_directories);
                let skipped = fits(&exclude) || !(include.is_empty() || fits(&include)) || left_out;
                if name.is_empty() || name == "." || name == target || skipped {
                    continue;
                }
                let name = if packing.junk { name.rsplit('/').next().unwrap_or(&name).to_owned() } else { name };
                files.push(Packed { path, name: if is_dir { format!("{name}/") } else { name }, kind });
            }
        }
        if files.is_empty() {
            eprintln!("zip error: Nothing to do! ({target})");
            return Ok(12);
        }
        match target.as_str() {
            "-" => {
                // There is no older archive to compare with.
                let packing = Packing { quiet: true, newer: false, ..packing };
                let bytes = pack(ZipWriter::new(Cursor::new(Vec::new())), &files, &[], &packing)?.into_inner();
                io::stdout().lock().write_all(&bytes)?;
                if packing.moves {
                    remove(&files)?;
                }
            }
            _ => write(&target, files, &packing)?,
        }
        Ok(0)
    })
}

/// `-x` takes patterns up to the next option.
fn globs(parser: &mut lexopt::Parser, globs: &mut Vec<String>) -> Result<(), Error> {
    globs.extend(parser.values()?.map(|glob| glob.to_string_lossy().into_owned()).filter(|glob| glob != "@"));
    Ok(())
}

fn write(target: &str, mut files: Vec<Packed>, packing: &Packing) -> Result<(), Error> {
    let part = format!("{target}.part");
    let mut writer = ZipWriter::new(File::create(&part).map_err(cli::with_path(target))?);
    let mut replaced = Vec::new();
    if let Ok(old) = File::open(target) {
        let mut old = ZipArchive::new(BufReader::new(old))?;
        for at in 0..old.len() {
            let entry = old.by_index_raw(at)?;
            let (name, modified) = (entry.name()?.into_owned(), entry.last_modified());
            let is_newer = |file: &Packed| {
                let Some((there, here)) = modified.zip(modified_of(&file.path)) else { return true };
                here > there
            };
            files.retain(|file| file.name != name || !packing.newer || is_newer(file));
            if files.iter().any(|file| file.name == name) {
                replaced.push(name);
            } else {
                writer.raw_copy_file(entry)?;
            }
        }
    }
    pack(writer, &files, &replaced, packing)?;
    std::fs::rename(&part, target).map_err(cli::with_path(target))?;
    if packing.moves { remove(&files) } else { Ok(()) }
}

/// Deletes packed files, as `-m` asks. Files come before their directory; a directory that is not empty stays.
fn remove(files: &[Packed]) -> Result<(), Error> {
    for file in files.iter().rev() {
        if file.kind.is_dir() {
            let _ = std::fs::remove_dir(&file.path);
        } else {
            std::fs::remove_file(&file.path).map_err(cli::with_path(&file.path))?;
        }
    }
    Ok(())
}

fn pack<W: Write + Seek>(
    mut writer: ZipWriter<W>,
    files: &[Packed],
    replaced: &[String],
    packing: &Packing,
) -> Result<W, Error> {
    let mut out = io::stdout().lock();
    let mut told = |text: std::fmt::Arguments<'_>| if packing.quiet { Ok(()) } else { writeln!(out, "{text}") };
    for Packed { path, name, kind } in files {
        let verb = if replaced.contains(name) { "updating" } else { "  adding" };
        let mut options =
            SimpleFileOptions::default().unix_permissions(crate::find::printf::mode(path.as_ref(), *kind));
        if let Some(time) = modified_of(path) {
            options = options.last_modified_time(time);
        }
        if kind.is_dir() {
            writer.add_directory(name.as_str(), options)?;
            told(format_args!("{verb}: {name} (stored 0%)"))?;
            continue;
        }
        if kind.is_symlink() {
            let target = std::fs::read_link(path).map_err(cli::with_path(path))?;
            writer.add_symlink(name.as_str(), target.to_string_lossy(), options)?;
            told(format_args!("{verb}: {name} (stored 0%)"))?;
            continue;
        }
        let bytes = std::fs::read(path).map_err(cli::with_path(path))?;
        let stored = packing.level == 0 || bytes.is_empty();
        let method = if stored { CompressionMethod::Stored } else { CompressionMethod::Deflated };
        options = options.compression_method(method).compression_level((!stored).then_some(packing.level));
        writer.start_file(name.as_str(), options)?;
        writer.write_all(&bytes)?;
        told(format_args!("{verb}: {name} ({})", if stored { "stored" } else { "deflated" }))?;
    }
    Ok(writer.finish()?)
}

/// When a file was changed, as an archive says it.
fn modified_of(path: &str) -> Option<zip::DateTime> {
    std::fs::metadata(path).and_then(|meta| meta.modified()).ok().and_then(stamp)
}

fn stamp(time: std::time::SystemTime) -> Option<zip::DateTime> {
    let seconds = i64::try_from(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()).ok()?;
    let (year, month, day) = crate::find::printf::civil_from_days(seconds / 86400);
    let of_day = |unit: i64, count: i64| u8::try_from(seconds / unit % count).ok();
    let (year, month, day) = (u16::try_from(year).ok()?, u8::try_from(month).ok()?, u8::try_from(day).ok()?);
    zip::DateTime::from_date_and_time(year, month, day, of_day(3600, 24)?, of_day(60, 60)?, of_day(1, 60)?).ok()
}

const UNZIP: &str =
    "Usage: unzip [-l] [-Z1] [-t] [-p] [-o] [-n] [-q] [-j] [-d DIR] ARCHIVE[.zip] [GLOB]... [-x GLOB]...
Unpack an archive, list it (-l, -Z1: names alone), test it (-t) or print its files (-p).
";

pub fn unzip(arguments: Vec<String>) -> i32 {
    cli::run(arguments, UNZIP, 9, |mut parser| {
        let (mut list, mut test, mut pipe, mut overwrite, mut never, mut quiet, mut junk) =
            (false, false, false, false, false, false, false);
        let (mut info, mut names) = (false, false);
        let (mut directory, mut exclude, mut operands) = (".".to_owned(), Vec::new(), Vec::new());
        while let Some(argument) = parser.next()? {
            match argument {
                Short('l' | 'v') => list = true,
                Short('Z') => (info, list) = (true, true),
                Short('1') if info => names = true,
                Short('t') => test = true,
                Short('p' | 'c') => pipe = true,
                Short('o') => overwrite = true,
                Short('n') => never = true,
                Short('q') => quiet = true,
                Short('j') => junk = true,
                Short('d') => directory = cli::value(&mut parser)?,
                Short('x') => globs(&mut parser, &mut exclude)?,
                Long("") => {}
                Value(operand) => operands.push(operand.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if operands.is_empty() {
            return Err("an archive is needed".into());
        }
        let file = operands.remove(0);
        let path = [file.clone(), format!("{file}.zip")].into_iter().find(|path| Path::new(path).is_file());
        let path = path.ok_or_else(|| format!("cannot find or open {file} or {file}.zip"))?;
        let mut archive = ZipArchive::new(BufReader::new(File::open(&path)?)).map_err(|e| format!("{path}: {e}"))?;
        let mut out = io::stdout().lock();
        if !pipe && !quiet && !names {
            writeln!(out, "Archive:  {path}")?;
        }
        if list && !names {
            writeln!(out, "  Length      Date    Time    Name\n---------  ---------- -----   ----")?;
        }
        let (mut total, mut count, mut code) = (0, 0, 0);
        for at in 0..archive.len() {
            let mut entry = archive.by_index(at)?;
            let name = entry.name()?.into_owned();
            let fits = |globs: &[String]| globs.iter().any(|pattern| glob::fits(pattern, &name, false));
            if fits(&exclude) || !(operands.is_empty() || fits(&operands)) {
                continue;
            }
            (total, count) = (total + entry.size(), count + 1);
            if names {
                writeln!(out, "{name}")?;
                continue;
            }
            if list {
                let time = entry.last_modified().unwrap_or_default();
                let date = format!("{}-{:02}-{:02}", time.year(), time.month(), time.day());
                writeln!(out, "{:9}  {date} {:02}:{:02}   {name}", entry.size(), time.hour(), time.minute())?;
                continue;
            }
            if pipe || test {
                let mut sink: Box<dyn Write> = if pipe { Box::new(&mut out) } else { Box::new(io::sink()) };
                io::copy(&mut entry, &mut sink).map_err(|e| format!("{name}: {e}"))?;
                drop(sink);
                if test && !quiet {
                    writeln!(out, "    testing: {name:22}   OK")?;
                }
                continue;
            }
            let shown = if junk { name.rsplit('/').next().unwrap_or_default() } else { &name };
            let Some(inner) = archive::inside(Path::new(shown), 0) else {
                if name.contains("..") {
                    eprintln!("unzip: {name}: the name leads out of the directory; not unpacked");
                    code = 2;
                }
                continue;
            };
            let base = Path::new(&directory);
            if archive::through_link(base, &inner) {
                eprintln!("unzip: {name}: a directory on the way is a symbolic link; not unpacked");
                code = 2;
                continue;
            }
            let target = base.join(&inner);
            let display = if directory == "." { inner.clone() } else { target.clone() };
            if entry.is_dir() {
                std::fs::create_dir_all(&target).map_err(cli::with_path(&target))?;
                if !quiet {
                    writeln!(out, "   creating: {}/", display.display())?;
                }
                continue;
            }
            if target.symlink_metadata().is_ok() {
                if never {
                    continue;
                }
                if !overwrite {
                    eprintln!("unzip: {} is there already; use -o to overwrite or -n to keep it", display.display());
                    code = 1;
                    continue;
                }
                std::fs::remove_file(&target).map_err(cli::with_path(&target))?;
            }
            if let Some(parent) = target.parent() {
                std::fs::create_dir_all(parent).map_err(cli::with_path(parent))?;
            }
            let mut file = File::create(&target).map_err(cli::with_path(&target))?;
            io::copy(&mut entry.by_ref(), &mut file).map_err(|e| format!("{name}: {e}"))?;
            if let Some(bits) = entry.unix_mode() {
                archive::set_permissions(&target, bits).map_err(cli::with_path(&target))?;
            }
            if !quiet {
                let verb = if entry.compression() == CompressionMethod::Stored { " extracting" } else { "  inflating" };
                writeln!(out, "{verb}: {:24}", display.display().to_string())?;
            }
        }
        if list && !names {
            let plural = if count == 1 { "file" } else { "files" };
            writeln!(out, "---------                     -------\n{total:9}                     {count} {plural}")?;
        }
        if count == 0 && !operands.is_empty() {
            eprintln!("caution: filename not matched:  {}", operands.join(" "));
            return Ok(11);
        }
        Ok(code)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(entries: &[(&str, &[u8])], more: &[&str]) -> (tempfile::TempDir, i32) {
        let base = tempfile::tempdir().unwrap();
        let archive = base.path().join("a.zip");
        let mut writer = ZipWriter::new(File::create(&archive).unwrap());
        for (name, content) in entries {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(content).unwrap();
        }
        writer.finish().unwrap();
        let code = unzip_into(&base, more);
        (base, code)
    }

    fn unzip_into(base: &tempfile::TempDir, more: &[&str]) -> i32 {
        let path = |name: &str| base.path().join(name).to_str().unwrap().to_owned();
        let mut arguments = vec!["unzip".into(), "-q".into(), path("a.zip"), "-d".into(), path("in")];
        arguments.extend(more.iter().map(|argument| argument.to_string()));
        unzip(arguments)
    }

    #[test]
    fn names_stay_in_the_directory() {
        let (base, code) = unpacked(&[("../evil", b"x"), ("/absolute", b"y"), ("a/b", b"z")], &[]);
        assert_eq!(code, 2);
        assert!(!base.path().join("evil").exists() && !Path::new("/absolute").exists());
        assert_eq!(std::fs::read(base.path().join("in/absolute")).unwrap(), b"y");
        assert_eq!(std::fs::read(base.path().join("in/a/b")).unwrap(), b"z");
    }

    #[test]
    fn links_are_not_followed() {
        let (base, _) = unpacked(&[("l/evil", b"x")], &["none"]);
        std::fs::create_dir(base.path().join("outside")).unwrap();
        std::fs::create_dir(base.path().join("in")).unwrap();
        crate::link::symlink(Path::new("../outside"), &base.path().join("in/l")).unwrap();
        assert_eq!(unzip_into(&base, &[]), 2);
        assert_eq!(base.path().join("outside").read_dir().unwrap().count(), 0);
    }

    #[test]
    fn codes_say_what_happened() {
        let (base, code) = unpacked(&[("a", b"x")], &[]);
        assert_eq!(code, 0);
        assert_eq!(unzip_into(&base, &[]), 1);
        assert_eq!(unzip_into(&base, &["-o"]), 0);
        assert_eq!(unzip_into(&base, &["b"]), 11);
        std::fs::write(base.path().join("a.zip"), "no archive").unwrap();
        assert_eq!(unzip_into(&base, &[]), 9);
    }

    #[test]
    fn what_is_cut_off_or_changed_is_an_error() {
        let content = [7; 5000];
        let (base, _) = unpacked(&[("a", &content)], &[]);
        let archive = base.path().join("a.zip");
        let mut bytes = std::fs::read(&archive).unwrap();
        bytes[35] ^= 0xff;
        std::fs::write(&archive, &bytes).unwrap();
        assert_ne!(unzip_into(&base, &["-o"]), 0);
        std::fs::write(&archive, &bytes[..bytes.len() / 2]).unwrap();
        assert_ne!(unzip_into(&base, &["-o"]), 0);
    }
}
