//! `install`: copies files and makes directories. Owners are taken and not kept, as there are none.

use std::fs;
use std::path::{Path, PathBuf};

use command::permissions;
use lexopt::Arg::{Long, Short, Value};

use crate::chmod::Mode;
use crate::cli::{self, Outcome};

const USAGE: &str = "Usage: install [-Dv] [-m MODE] SOURCE DEST
       install [-Dv] [-m MODE] [-t DIR] SOURCE... [DIR]
       install -d [-v] DIR...
Copy files, or make directories with -d.

  -D        make the directories that DEST needs
  -t DIR    copy into this directory
  -v        say what is done
  -m MODE   permissions of the copies instead of 755
  -o OWNER  -g GROUP  -s    taken and ignored: files have no owners here
";

#[derive(Default)]
struct Options {
    directories: bool,
    parents: bool,
    verbose: bool,
    /// Copies have the times of their sources.
    keep_times: bool,
    /// The destination is a file, also where a directory has its name.
    to_file: bool,
    target: Option<String>,
    bits: Option<u32>,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let mut options = Options::default();
        let mut operands = Vec::new();
        while let Some(argument) = parser.next()? {
            match argument {
                Short('d') | Long("directory") => options.directories = true,
                Short('D') => options.parents = true,
                Short('v') | Long("verbose") => options.verbose = true,
                Short('t') | Long("target-directory") => options.target = Some(cli::value(&mut parser)?),
                Short('m') | Long("mode") => {
                    let mode = cli::value(&mut parser)?;
                    let of = Mode::parse(&mode).ok_or_else(|| format!("invalid mode '{mode}'"))?;
                    // As of nothing, a clause only adds.
                    options.bits = Some(of.applied(0, false));
                }
                Short('o' | 'g') | Long("owner" | "group") => {
                    cli::value(&mut parser)?;
                }
                Short('p') | Long("preserve-timestamps") => options.keep_times = true,
                Short('T') | Long("no-target-directory") => options.to_file = true,
                Short('c') => {}
                Value(operand) => operands.push(operand.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        if options.directories { directories(&options, &operands) } else { copies(&options, operands) }
    })
}

fn directories(options: &Options, operands: &[String]) -> Outcome {
    if operands.is_empty() {
        return Err("a directory is needed".into());
    }
    for directory in operands {
        fs::create_dir_all(directory).map_err(cli::with_path(directory))?;
        if options.verbose {
            println!("install: creating directory '{directory}'");
        }
    }
    Ok(0)
}

/// Replaces the destination with a new file. A link there is replaced, not followed, and an open file keeps its content.
fn replace(source: &str, to: &Path) -> std::io::Result<()> {
    let dir = to.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Under a name that nothing has.
    let mut part = tempfile::NamedTempFile::new_in(dir)?;
    std::io::copy(&mut fs::File::open(source)?, &mut part)?;
    part.persist(to)?;
    Ok(())
}

fn copies(options: &Options, mut operands: Vec<String>) -> Outcome {
    let destination = match &options.target {
        Some(directory) => directory.clone(),
        None => operands.pop().ok_or("a file and a destination are needed")?,
    };
    if operands.is_empty() {
        return Err(format!("a destination is needed after '{destination}'").into());
    }
    let is_directory = Path::new(&destination).is_dir();
    if options.to_file && (is_directory || operands.len() > 1 || options.target.is_some()) {
        return Err(format!("cannot overwrite directory '{destination}' with non-directory").into());
    }
    let into = options.target.is_some() || operands.len() > 1 || is_directory;
    if options.parents {
        let needed = if into { Some(Path::new(&destination)) } else { Path::new(&destination).parent() };
        if let Some(needed) = needed {
            fs::create_dir_all(needed).map_err(cli::with_path(needed))?;
        }
    }
    if into && !Path::new(&destination).is_dir() {
        return Err(format!("'{destination}' is not a directory").into());
    }
    for source in &operands {
        let to = match Path::new(source).file_name().filter(|_| into) {
            Some(name) => Path::new(&destination).join(name),
            None => PathBuf::from(&destination),
        };
        if Path::new(source).is_dir() {
            return Err(format!("'{source}' is a directory; `install` copies files only").into());
        }
        // Copied over itself, a file would be emptied.
        if fs::canonicalize(source).ok().is_some_and(|from| fs::canonicalize(&to).is_ok_and(|to| to == from)) {
            return Err(format!("'{source}' and '{}' are the same file", to.display()).into());
        }
        replace(source, &to)
            .map_err(|e| format!("cannot copy '{source}' to '{}': {}", to.display(), cli::reason(&e)))?;
        permissions::set(&to, options.bits.unwrap_or(0o755)).map_err(cli::with_path(&to))?;
        if options.keep_times {
            let times = fs::metadata(source).and_then(|meta| meta.modified());
            let times = times.map(|time| fs::FileTimes::new().set_modified(time).set_accessed(time));
            let kept = times.and_then(|times| fs::File::options().write(true).open(&to)?.set_times(times));
            kept.map_err(cli::with_path(&to))?;
        }
        if options.verbose {
            println!("'{source}' -> '{}'", to.display());
        }
    }
    Ok(0)
}
