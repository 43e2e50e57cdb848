//! `tar`: `c`, `x`, `t`, `r`, plain or compressed.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use lexopt::Arg::{Long, Short, Value};
use tar::{Archive, Builder, Entry, EntryType, Header};

use crate::archive;
use crate::cli::{self, Error};
use crate::compress::format::{Encoder, Format};
use crate::find::parse::date;
use crate::find::printf::mode;
use crate::glob;

const USAGE: &str = "Usage: tar c|x|t [OPTION]... [-f ARCHIVE] [NAME]...
Pack, unpack or list an archive.

  -c  -x  -t  -r       pack, unpack, list, add to an archive that is not compressed
  -f FILE              the archive (- is standard input or output)
  -z  -J  -j  -a       with gzip, with xz, with bzip2, with what FILE ends in
  -C DIR  -v  -O  -k   in this directory, say what is done, to standard output, keep what is there
  -T FILE              the names to pack
  --exclude=GLOB  --strip-components=NUM  --wildcards
  --mtime=DATE|FILE  --owner=NAME[:ID]  --group=NAME[:ID]  --numeric-owner  --mode=OCTAL
                       the attributes to record in the archive instead of those of the files
  -m                   unpacked files are as old as now
  -h                   what links lead to in their place

Names are packed in their order, so --sort=name is always so.
";

#[derive(Clone, Copy, PartialEq)]
enum Action {
    Create,
    Extract,
    List,
    Append,
}

struct Options {
    action: Action,
    file: String,
    format: Option<Format>,
    verbose: bool,
    to_stdout: bool,
    keep: bool,
    exclude: Vec<String>,
    strip: usize,
    /// Each name with the directory that it is relative to.
    names: Vec<(PathBuf, String)>,
    directory: PathBuf,
    /// Attributes to record in the archive instead of those of the files.
    said: Said,
    /// Whether owners are numbers only.
    numeric: bool,
    /// Whether unpacked files are as old as now.
    touch: bool,
    /// Whether links are followed: their targets are packed instead.
    follow: bool,
}

/// Attributes that options set for all entries of an archive.
#[derive(Default)]
struct Said {
    mtime: Option<u64>,
    owner: Option<(String, u64)>,
    group: Option<(String, u64)>,
    mode: Option<u32>,
}

/// Of the user that files belong to here, and of its group.
const ID: u64 = 1000;
const NAME: &str = "kiso";

pub fn main(mut arguments: Vec<String>) -> i32 {
    // `tar xzf a.tgz` is `tar -x -z -f a.tgz`.
    if let Some(first) = arguments.get_mut(1)
        && !first.starts_with('-')
    {
        first.insert(0, '-');
    }
    cli::run(arguments, USAGE, 2, |parser| {
        let options = parse(parser)?;
        match options.action {
            Action::Create => create(&options),
            Action::Append => append(&options),
            Action::Extract | Action::List => read(&options),
        }
    })
}

fn parse(mut parser: lexopt::Parser) -> Result<Options, Error> {
    let mut action = None;
    let mut options = Options {
        action: Action::List,
        file: "-".into(),
        format: None,
        verbose: false,
        to_stdout: false,
        keep: false,
        exclude: Vec::new(),
        strip: 0,
        names: Vec::new(),
        directory: PathBuf::new(),
        said: Said::default(),
        numeric: false,
        touch: false,
        follow: false,
    };
    let mut by_name = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Short('c') | Long("create") => action = Some(Action::Create),
            Short('x') | Long("extract" | "get") => action = Some(Action::Extract),
            Short('t') | Long("list") => action = Some(Action::List),
            Short('r') | Long("append") => action = Some(Action::Append),
            Short('f') | Long("file") => options.file = cli::value(&mut parser)?,
            Short('z') | Long("gzip" | "gunzip") => options.format = Some(Format::Gzip),
            Short('J') | Long("xz") => options.format = Some(Format::Xz),
            Short('j') | Long("bzip2") => options.format = Some(Format::Bzip2),
            Short('a') | Long("auto-compress") => by_name = true,
            Short('v') | Long("verbose") => options.verbose = true,
            Short('O') | Long("to-stdout") => options.to_stdout = true,
            Short('k') | Long("keep-old-files") => options.keep = true,
            Short('C') | Long("directory") => options.directory.push(cli::value(&mut parser)?),
            Long("exclude") => options.exclude.push(cli::value(&mut parser)?.trim_end_matches('/').to_owned()),
            Long("strip-components") => options.strip = cli::number(&mut parser)?,
            Short('T') | Long("files-from") => {
                let text = cli::read(&cli::value(&mut parser)?)?;
                for name in String::from_utf8_lossy(&text).lines() {
                    options.names.push((options.directory.clone(), name.to_owned()));
                }
            }
            Short('m') | Long("touch") => options.touch = true,
            Long("numeric-owner") => options.numeric = true,
            Long("mtime") => options.said.mtime = Some(mtime(&cli::value(&mut parser)?)?),
            Long("owner") => options.said.owner = Some(owner(&cli::value(&mut parser)?)?),
            Long("group") => options.said.group = Some(owner(&cli::value(&mut parser)?)?),
            Long("mode") => {
                let text = cli::value(&mut parser)?;
                let octal = u32::from_str_radix(&text, 8).ok().filter(|bits| *bits <= 0o7777);
                options.said.mode = Some(octal.ok_or_else(|| format!("{text:?} is no octal mode, such as 644"))?);
            }
            Long("sort") => one_of("--sort", &cli::value(&mut parser)?, &["none", "name", "inode"])?,
            // All of these read the one format that is written.
            Long("format") => {
                one_of("--format", &cli::value(&mut parser)?, &["gnu", "oldgnu", "pax", "posix", "ustar", "v7"])?;
            }
            Short('h') | Long("dereference") => options.follow = true,
            Short('p' | 'P') => {}
            Long("wildcards" | "no-same-owner" | "no-same-permissions" | "overwrite") => {}
            Value(name) => options.names.push((options.directory.clone(), name.to_string_lossy().into_owned())),
            other => return Err(other.unexpected().into()),
        }
    }
    options.action = action.ok_or("You must specify one of the '-crtx' options")?;
    if by_name && options.format.is_none() {
        options.format = Format::of_name(&options.file);
    }
    Ok(options)
}

fn one_of(option: &str, word: &str, words: &[&str]) -> Result<(), Error> {
    match words.contains(&word) {
        true => Ok(()),
        false => Err(format!("{option}={word}: it has to be one of {}", words.join(", ")).into()),
    }
}

/// Seconds since 1970, of a date or of a file, which begins with `.` or `/`.
fn mtime(text: &str) -> Result<u64, Error> {
    let time = match text.starts_with(['.', '/']) {
        true => std::fs::metadata(text).and_then(|found| found.modified()).map_err(cli::with_path(text))?,
        false => date(text, SystemTime::now())?,
    };
    Ok(time.duration_since(UNIX_EPOCH).map_err(|_| "a date before 1970")?.as_secs())
}

/// `NAME`, `NAME:ID` or an id, which has a name if it is root's.
fn owner(text: &str) -> Result<(String, u64), Error> {
    let id = |text: &str| text.trim_start_matches('+').parse::<u64>();
    let number = |text: &str| id(text).map_err(|_| format!("{text:?} is no number of a user or group"));
    match text.split_once(':') {
        Some((name, of)) => Ok((name.to_owned(), number(of)?)),
        None if text == "root" => Ok((text.to_owned(), 0)),
        None => Ok(match id(text) {
            Ok(0) => ("root".to_owned(), 0),
            Ok(id) => (String::new(), id),
            Err(_) => (text.to_owned(), ID),
        }),
    }
}

impl Options {
    fn excludes(&self, path: &str) -> bool {
        // A glob fits a whole path, or what begins at a component of it.
        let parts = path.trim_end_matches('/').split('/').scan(0, |at, part| {
            let start = *at;
            *at += part.len() + 1;
            Some(start)
        });
        let path = path.trim_end_matches('/');
        let starts: Vec<usize> = parts.collect();
        self.exclude.iter().any(|pattern| starts.iter().any(|start| glob::fits(pattern, &path[*start..], false)))
    }

    fn wants(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.names.is_empty()
            || self.names.iter().any(|(_, name)| {
                let name = name.trim_end_matches('/');
                path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                    || glob::fits(name, path, false)
            })
    }
}

fn create(options: &Options) -> cli::Outcome {
    if options.names.is_empty() {
        return Err("Cowardly refusing to create an empty archive".into());
    }
    let output: Box<dyn Write> = match options.file.as_str() {
        "-" => Box::new(io::stdout().lock()),
        path => Box::new(BufWriter::with_capacity(64 << 10, File::create(path).map_err(cli::with_path(path))?)),
    };
    if let Some(format) = options.format {
        let mut builder = Builder::new(Encoder::new(format, output, format.usual_level())?);
        let code = pack(options, &mut builder)?;
        builder.into_inner()?.finish()?.flush()?;
        Ok(code)
    } else {
        let mut builder = Builder::new(output);
        let code = pack(options, &mut builder)?;
        builder.into_inner()?.flush()?;
        Ok(code)
    }
}

fn append(options: &Options) -> cli::Outcome {
    let path = &options.file;
    let mut entries = Vec::new();
    let end = {
        let mut archive = Archive::new(File::open(path).map_err(cli::with_path(path))?);
        for entry in archive.entries()? {
            let entry = entry?;
            entries.push(entry.raw_file_position() + entry.size().next_multiple_of(512));
        }
        entries.into_iter().max().unwrap_or(0)
    };
    let mut file = File::options().write(true).open(path).map_err(cli::with_path(path))?;
    file.set_len(end)?;
    io::Seek::seek(&mut file, io::SeekFrom::End(0))?;
    let mut builder = Builder::new(file);
    let code = pack(options, &mut builder)?;
    builder.into_inner()?;
    Ok(code)
}

fn pack(options: &Options, builder: &mut Builder<impl Write>) -> cli::Outcome {
    let mut code = 0;
    let archive = (options.file != "-").then(|| std::fs::canonicalize(&options.file).ok()).flatten();
    for (directory, name) in &options.names {
        // A slash behind a link does not make a directory of it here.
        let plain = name.trim_end_matches('/');
        let name = if plain.is_empty() { name } else { plain };
        let root = directory.join(name);
        let walk = walkdir::WalkDir::new(&root).sort_by_file_name();
        let mut walk = walk.follow_links(options.follow).follow_root_links(options.follow).into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(e) => {
                    eprintln!("tar: {}: Cannot open: {}", root.display(), cli::reason(&e.into()));
                    code = 2;
                    continue;
                }
            };
            let below = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            let shown = if below.as_os_str().is_empty() { PathBuf::from(name) } else { Path::new(name).join(below) };
            let shown = shown.to_string_lossy().into_owned();
            if options.excludes(&shown) {
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
            if archive.is_some() && std::fs::canonicalize(entry.path()).ok() == archive {
                eprintln!("tar: {shown}: file is the archive; not dumped");
                continue;
            }
            if options.verbose {
                let slash = if entry.file_type().is_dir() && !shown.ends_with('/') { "/" } else { "" };
                let line = format!("{shown}{slash}\n");
                let done = if options.file == "-" {
                    io::stderr().write_all(line.as_bytes())
                } else {
                    io::stdout().write_all(line.as_bytes())
                };
                done?;
            }
            add(options, builder, &entry, shown.trim_start_matches('/'))?;
        }
    }
    Ok(code)
}

fn add(
    options: &Options,
    builder: &mut Builder<impl Write>,
    entry: &walkdir::DirEntry,
    name: &str,
) -> Result<(), Error> {
    let kind = entry.file_type();
    let meta = entry.metadata()?;
    let modified = meta.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    let Said { mtime, owner, group, mode: bits } = &options.said;
    let named = |said: &Option<(String, u64)>| said.clone().unwrap_or_else(|| (NAME.to_owned(), ID));
    let (user, group) = (named(owner), named(group));
    let mut header = Header::new_gnu();
    header.set_mode(bits.unwrap_or_else(|| mode(entry.path(), kind)));
    header.set_uid(user.1);
    header.set_gid(group.1);
    if !options.numeric {
        header.set_username(&user.0)?;
        header.set_groupname(&group.0)?;
    }
    header.set_mtime(mtime.unwrap_or(modified.as_secs()));
    header.set_size(0);
    if kind.is_dir() {
        header.set_entry_type(EntryType::Directory);
        append_entry(builder, &mut header, &format!("{}/", name.trim_end_matches('/')), "", io::empty())?;
    } else if kind.is_symlink() {
        header.set_entry_type(EntryType::Symlink);
        let target = std::fs::read_link(entry.path())?;
        append_entry(builder, &mut header, name, &target.to_string_lossy(), io::empty())?;
    } else {
        header.set_entry_type(EntryType::Regular);
        header.set_size(meta.len());
        let file = File::open(entry.path()).map_err(cli::with_path(entry.path()))?;
        // A file that grows meanwhile must not break the archive.
        append_entry(builder, &mut header, name, "", file.take(meta.len()))?;
    }
    Ok(())
}

/// Adds an entry. The names are put into the header here, since the crate takes a backslash for a separator under WASI.
fn append_entry(
    builder: &mut Builder<impl Write>,
    header: &mut Header,
    name: &str,
    target: &str,
    data: impl Read,
) -> Result<(), Error> {
    for (text, kind) in [(target, EntryType::GNULongLink), (name, EntryType::GNULongName)] {
        let old = header.as_old_mut();
        let field = if kind == EntryType::GNULongLink { &mut old.linkname } else { &mut old.name };
        field.fill(0);
        let fits = text.len().min(field.len());
        field[..fits].copy_from_slice(&text.as_bytes()[..fits]);
        if text.len() > fits {
            let mut long = Header::new_gnu();
            long.as_old_mut().name[..LONG_LINK.len()].copy_from_slice(LONG_LINK);
            long.set_mode(0o644);
            long.set_uid(0);
            long.set_gid(0);
            long.set_mtime(0);
            long.set_entry_type(kind);
            long.set_size(text.len() as u64 + 1);
            long.set_cksum();
            builder.append(&long, text.as_bytes().chain(&[0][..]))?;
        }
    }
    header.set_cksum();
    Ok(builder.append(header, data)?)
}

/// The name of an entry that holds the long name of the next one.
const LONG_LINK: &[u8] = b"././@LongLink";

fn read(options: &Options) -> cli::Outcome {
    let mut input =
        BufReader::with_capacity(64 << 10, cli::open(&options.file).map_err(cli::with_path(&options.file))?);
    // Detects the compression by the first bytes, as GNU's tar does.
    let format = Format::detect(io::BufRead::fill_buf(&mut input)?);
    let input: Box<dyn Read> = match format {
        Some(format) => format.decoder(input),
        None => Box::new(input),
    };
    let mut archive = Archive::new(input);
    let mut code = 0;
    let mut found = vec![false; options.names.len()];
    for entry in archive.entries()? {
        let mut entry = entry.map_err(|e| format!("This does not look like a tar archive ({e})"))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if !options.wants(&name) || options.excludes(&name) {
            continue;
        }
        for (at, (_, wanted)) in options.names.iter().enumerate() {
            found[at] |= name.trim_end_matches('/').starts_with(wanted.trim_end_matches('/'))
                || glob::fits(wanted, name.trim_end_matches('/'), false);
        }
        if options.action == Action::List {
            println!("{}", if options.verbose { long(options, &entry, &name)? } else { name });
            continue;
        }
        if options.verbose {
            println!("{name}");
        }
        if options.to_stdout {
            io::copy(&mut entry, &mut io::stdout().lock())?;
        } else if let Err(e) = extract(options, &mut entry, &name) {
            eprintln!("tar: {name}: {e}");
            code = 2;
        }
    }
    for ((_, wanted), found) in options.names.iter().zip(found) {
        if !found {
            eprintln!("tar: {wanted}: Not found in archive");
            code = 2;
        }
    }
    Ok(code)
}

fn extract(options: &Options, entry: &mut Entry<impl Read>, name: &str) -> Result<(), Error> {
    let Some(path) = archive::inside(Path::new(name), options.strip) else {
        return match name.contains("..") {
            true => Err("the name leads out of the directory; not unpacked".into()),
            false => Ok(()),
        };
    };
    if archive::through_link(&options.directory, &path) {
        return Err("a directory on the way is a symbolic link; not unpacked".into());
    }
    let target = options.directory.join(&path);
    let plain = |e: io::Error| cli::reason(&e);
    let kind = entry.header().entry_type();
    if kind.is_dir() {
        return Ok(std::fs::create_dir_all(&target).map_err(plain)?);
    }
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent).map_err(plain)?;
    }
    let is_there = target.symlink_metadata().is_ok();
    if options.keep && is_there {
        return Err("file exists; not unpacked".into());
    }
    if is_there && !target.is_dir() {
        // An existing file may be a link; writing to it would write elsewhere.
        std::fs::remove_file(&target).map_err(plain)?;
    }
    if kind.is_symlink() || kind.is_hard_link() {
        let link = entry.link_name()?.ok_or("the link has no target")?.into_owned();
        if kind.is_hard_link() {
            let source =
                archive::inside(&link, options.strip).ok_or("the link leads out of the directory; not unpacked")?;
            if archive::through_link(&options.directory, &source) {
                return Err("a directory on the way of the link is a symbolic link; not unpacked".into());
            }
            let source = options.directory.join(source);
            if source.is_symlink() {
                // Its target may be elsewhere, so it is not looked at.
                crate::link::symlink(&std::fs::read_link(source).map_err(plain)?, &target).map_err(plain)?;
            } else {
                std::fs::copy(source, &target).map_err(plain)?;
            }
        } else {
            crate::link::symlink(&link, &target).map_err(plain)?;
        }
        return Ok(());
    }
    if !kind.is_file() && !kind.is_contiguous() && !kind.is_gnu_sparse() {
        return Err("neither a file, a directory nor a link; not unpacked".into());
    }
    let mut file = File::create(&target).map_err(plain)?;
    io::copy(entry, &mut file).map_err(plain)?;
    if let Ok(bits) = entry.header().mode() {
        archive::set_permissions(&target, bits).map_err(plain)?;
    }
    if let Ok(seconds) = entry.header().mtime()
        && !options.touch
    {
        let _ = file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(seconds));
    }
    Ok(())
}

fn long(options: &Options, entry: &Entry<impl Read>, name: &str) -> Result<String, Error> {
    let header = entry.header();
    let kind = match header.entry_type() {
        EntryType::Directory => 'd',
        EntryType::Symlink => 'l',
        EntryType::Link => 'h',
        _ => '-',
    };
    let bits = header.mode()?;
    let mode: String =
        (0..9).rev().map(|bit| if bits >> bit & 1 == 1 { ['x', 'w', 'r'][bit % 3] } else { '-' }).collect();
    let owner = |name: Option<&str>, id: u64| {
        name.filter(|n| !n.is_empty() && !options.numeric).map_or(id.to_string(), String::from)
    };
    let user = owner(header.username().ok().flatten(), header.uid()?);
    let group = owner(header.groupname().ok().flatten(), header.gid()?);
    let seconds = i64::try_from(header.mtime()?)?;
    let (year, month, day) = crate::find::printf::civil_from_days(seconds / 86400);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    let link = entry.link_name()?.map(|link| format!(" -> {}", link.display())).unwrap_or_default();
    let owners = format!("{user}/{group}");
    let width = 19usize.saturating_sub(owners.len() + 1);
    let size = entry.size();
    Ok(format!("{kind}{mode} {owners} {size:>width$} {year}-{month:02}-{day:02} {hour:02}:{minute:02} {name}{link}"))
}
