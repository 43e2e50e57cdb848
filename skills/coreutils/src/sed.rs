//! `sed`, with GNU's extensions.

mod pattern;
mod run;
mod script;

use lexopt::Arg::{Long, Short, Value};

use crate::cli;

const USAGE: &str = "Usage: sed [OPTION]... SCRIPT [FILE]...
       sed [OPTION]... -e SCRIPT... -f FILE... [FILE]...
Edit lines.

  -n          print only what is asked for    -E -r       extended expressions
  -i[SUFFIX]  edit the files themselves       -s          each file on its own
  -z          lines end with NUL              -u          (ignored)
";

/// How the files are read and written.
#[derive(Default)]
pub struct Options {
    quiet: bool,
    separate: bool,
    /// The suffix of the copies that are kept, which may be empty.
    in_place: Option<String>,
    /// A link is followed to the file that is changed in place.
    follow: bool,
    zero: bool,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let mut options = Options::default();
        let (mut extended, mut text, mut files) = (false, None::<String>, Vec::new());
        let mut add = |more: &str| match &mut text {
            Some(text) => text.extend(["\n", more]),
            None => text = Some(more.to_owned()),
        };
        while let Some(argument) = parser.next()? {
            match argument {
                Short('n') | Long("quiet" | "silent") => options.quiet = true,
                Short('E' | 'r') | Long("regexp-extended") => extended = true,
                Short('s') | Long("separate") => options.separate = true,
                Short('z') | Long("null-data") => options.zero = true,
                Short('i') | Long("in-place") => {
                    let suffix = parser.optional_value().map(|suffix| suffix.to_string_lossy().into_owned());
                    options.in_place = Some(suffix.unwrap_or_default());
                    options.separate = true;
                }
                Short('e') | Long("expression") => add(&cli::value(&mut parser)?),
                Short('f') | Long("file") => {
                    let bytes = cli::read(&cli::value(&mut parser)?)?;
                    let script = String::from_utf8_lossy(&bytes).into_owned();
                    add(script.strip_suffix('\n').unwrap_or(&script));
                }
                Long("follow-symlinks") => options.follow = true,
                Short('u' | 'b') | Long("unbuffered" | "posix" | "binary") => {}
                Value(file) => files.push(file.to_string_lossy().into_owned()),
                other => return Err(other.unexpected().into()),
            }
        }
        let text = match text {
            Some(text) => text,
            None if files.is_empty() => return Err("a script is needed (see sed --help)".into()),
            None => files.remove(0),
        };
        options.quiet |= text.starts_with("#n\n") || text == "#n";
        let script = script::parse(&text, extended)?;
        run::run(&options, script, cli::files_or_stdin(files))
    })
}
