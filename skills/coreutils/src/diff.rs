//! `diff`: normal, unified and context form and in columns, for files and trees.

mod columns;
mod compare;
mod print;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use lexopt::Arg::{Long, Short, Value};

use crate::cli::{self, Error};
use columns::Columns;
use compare::{Lines, Rules};
use print::Form;

const USAGE: &str = "Usage: diff [OPTION]... FILE1 FILE2
Compare files line by line. Ends with 0 if they are the same, 1 if not, 2 if something went wrong.

  -u  -U NUM   unified form, with NUM lines around      -c  -C NUM   context form
  -y  -W NUM   beside each other, NUM columns wide      --suppress-common-lines
  -q           only whether they differ                 -s           say so if they are the same
  -r           trees   -N  a file that is missing is an empty one    -x GLOB  without such files
  -i -w -b -B  ignore case, all blanks, changes of blanks, blank lines
  --label TEXT --color=WHEN --strip-trailing-cr -a
";

pub struct Options {
    form: Form,
    columns: Option<Columns>,
    brief: bool,
    report_same: bool,
    /// Files are compared line by line, whatever is in them.
    text: bool,
    recursive: bool,
    new_file: bool,
    exclude: Vec<String>,
    labels: Vec<String>,
    rules: Rules,
    /// As it is repeated before each pair of a tree.
    options: String,
}

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 2, |parser| {
        let (options, files) = parse(parser)?;
        let [left, right] = &files[..] else { return Err("two files are needed".into()) };
        let (left, right) = match (Path::new(left).is_dir(), Path::new(right).is_dir()) {
            (true, true) => return tree(&options, left, right),
            (true, false) if right != "-" => (join(left, base(right)), right.clone()),
            (false, true) if left != "-" => (left.clone(), join(right, base(left))),
            _ => (left.clone(), right.clone()),
        };
        pair(&options, &left, &right, false)
    })
}

fn parse(mut parser: lexopt::Parser) -> Result<(Options, Vec<String>), Error> {
    let mut options = Options {
        form: Form::Normal,
        columns: None,
        brief: false,
        report_same: false,
        text: false,
        recursive: false,
        new_file: false,
        exclude: Vec::new(),
        labels: Vec::new(),
        rules: Rules::default(),
        options: String::new(),
    };
    let mut files = Vec::new();
    let (mut width, mut changes_only) = (130, false);
    while let Some(argument) = parser.next()? {
        if let Short(letter) = argument
            && !"UCW".contains(letter)
        {
            options.options.push_str(&format!(" -{letter}"));
        }
        match argument {
            Short('u') => options.form = Form::Unified(3),
            Short('U') => options.form = Form::Unified(cli::number(&mut parser)?),
            Long("unified") => options.form = Form::Unified(lines_around(&mut parser)?),
            Short('c') => options.form = Form::Context(3),
            Short('C') => options.form = Form::Context(cli::number(&mut parser)?),
            Long("context") => options.form = Form::Context(lines_around(&mut parser)?),
            Long("normal") => options.form = Form::Normal,
            Short('y') | Long("side-by-side") => options.columns = Some(Columns { width, changes_only }),
            Short('W') | Long("width") => width = cli::number(&mut parser)?,
            Long("suppress-common-lines") => changes_only = true,
            Short('q') | Long("brief") => options.brief = true,
            Short('s') | Long("report-identical-files") => options.report_same = true,
            Short('r') | Long("recursive") => options.recursive = true,
            Short('N') | Long("new-file") => options.new_file = true,
            Short('x') | Long("exclude") => options.exclude.push(cli::value(&mut parser)?),
            Short('L') | Long("label") => options.labels.push(cli::value(&mut parser)?),
            Short('i') | Long("ignore-case") => options.rules.ignore_case = true,
            Short('w') | Long("ignore-all-space") => options.rules.no_blanks = true,
            Short('b') | Long("ignore-space-change") => options.rules.one_blank = true,
            Short('B') | Long("ignore-blank-lines") => options.rules.no_blank_lines = true,
            Long("strip-trailing-cr") => options.rules.no_carriage_return = true,
            Long("color") => drop(parser.optional_value()),
            Short('a') | Long("text") => options.text = true,
            Short('d') | Long("minimal" | "speed-large-files") => {}
            Value(file) => files.push(file.to_string_lossy().into_owned()),
            other => return Err(other.unexpected().into()),
        }
    }
    options.columns = options.columns.map(|_| Columns { width, changes_only });
    Ok((options, files))
}

fn lines_around(parser: &mut lexopt::Parser) -> Result<usize, Error> {
    match parser.optional_value() {
        Some(text) => Ok(text.to_string_lossy().parse()?),
        None => Ok(3),
    }
}

fn join(directory: &str, name: &str) -> String {
    format!("{}/{name}", directory.trim_end_matches('/'))
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn tree(options: &Options, left: &str, right: &str) -> cli::Outcome {
    let names = |directory: &str| -> Result<BTreeSet<String>, Error> {
        let mut names = BTreeSet::new();
        for entry in std::fs::read_dir(directory).map_err(cli::with_path(directory))? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if !options.exclude.iter().any(|glob| crate::glob::fits(glob, &name, false)) {
                names.insert(name);
            }
        }
        Ok(names)
    };
    let (ours, theirs) = (names(left)?, names(right)?);
    let mut code = 0;
    for name in ours.union(&theirs) {
        let (a, b) = (join(left, name), join(right, name));
        let only = match (ours.contains(name), theirs.contains(name)) {
            (true, false) => Some((left, &a)),
            (false, true) => Some((right, &b)),
            _ => None,
        };
        if let Some((directory, path)) = only
            && (!options.new_file || Path::new(path).is_dir())
        {
            println!("Only in {directory}: {name}");
            code = code.max(1);
            continue;
        }
        let one = match (Path::new(&a).is_dir(), Path::new(&b).is_dir()) {
            (true, true) if options.recursive => tree(options, &a, &b)?,
            (true, true) => {
                println!("Common subdirectories: {a} and {b}");
                0
            }
            (true, false) if only.is_none() => {
                println!("File {a} is a directory while file {b} is a regular file");
                1
            }
            (false, true) if only.is_none() => {
                println!("File {a} is a regular file while file {b} is a directory");
                1
            }
            _ => pair(options, &a, &b, true)?,
        };
        code = code.max(one);
    }
    Ok(code)
}

fn pair(options: &Options, left: &str, right: &str, in_tree: bool) -> cli::Outcome {
    let read = |path: &str| -> Result<Vec<u8>, Error> {
        if options.new_file && path != "-" && !Path::new(path).exists() {
            return Ok(Vec::new());
        }
        cli::read(path)
    };
    let (a, b) = (read(left)?, read(right)?);
    let mut out = io::stdout().lock();
    let same = |out: &mut io::StdoutLock| -> cli::Outcome {
        if options.report_same {
            writeln!(out, "Files {left} and {right} are identical")?;
        }
        Ok(0)
    };
    if a == b && options.columns.is_none() {
        return same(&mut out);
    }
    if !options.text && (a.contains(&0) || b.contains(&0)) {
        let kind = if options.brief { "Files" } else { "Binary files" };
        writeln!(out, "{kind} {left} and {right} differ")?;
        return Ok(1);
    }
    let (a, b) = (Lines::new(&a), Lines::new(&b));
    let changes = compare::changes(&a, &b, &options.rules);
    if let Some(columns) = options.columns.filter(|_| !options.brief) {
        columns::print(columns, &a, &b, &changes, &mut out)?;
        return Ok(i32::from(!changes.is_empty()));
    }
    if changes.is_empty() {
        return same(&mut out);
    }
    if options.brief {
        writeln!(out, "Files {left} and {right} differ")?;
        return Ok(1);
    }
    if in_tree {
        writeln!(out, "diff{} {left} {right}", options.options)?;
    }
    let head = |index: usize, path: &str| match options.labels.get(index) {
        Some(label) => label.clone(),
        None => print::head(path),
    };
    print::print(options.form, &a, &b, &changes, [head(0, left), head(1, right)], &mut out)?;
    Ok(1)
}
