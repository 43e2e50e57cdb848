//! `mogrify`: changes files in their place.

use super::convert::{Line, is_option};
use super::option::{Step, read};
use super::{Outcome, Words};
use std::path::Path;

const USAGE: &str = "Usage: mogrify [OPTION]... FILE...
Change pictures in place, each on its own, with the options of convert.
  -path DIRECTORY  write them there instead
  -format FORMAT   write FILE.FORMAT beside each FILE
";

pub(super) fn run(words: &[String]) -> Outcome {
    if matches!(words.first().map(String::as_str), Some("-help" | "--help")) {
        return super::print(USAGE);
    }
    let (mut steps, mut files, mut directory) = (Vec::new(), Vec::new(), None);
    let mut words = Words::new(words);
    while let Some(word) = words.next() {
        match word {
            "-path" => directory = Some(words.value(word)?),
            "-write" | "-composite" | "-append" | "+append" => return Err(super::unknown(word)),
            _ if is_option(word) => steps.push((word, read(word, &mut words)?)),
            _ => files.push(word),
        }
    }
    if files.is_empty() {
        return Err("files are missing; use: mogrify [OPTION]... FILE...".to_owned());
    }
    let mut failed = None;
    for file in files {
        // The others are done all the same.
        if let Err(message) = one(file, &steps, directory)
            && let Some(before) = failed.replace(message)
        {
            eprintln!("mogrify: {before}");
        }
    }
    failed.map_or(Ok(()), Err)
}

fn one(file: &str, steps: &[(&str, Step)], directory: Option<&str>) -> Outcome {
    let mut line = Line::default();
    line.add(file)?;
    for (word, step) in steps {
        line.step(step.clone()).map_err(|e| format!("{file}: {word}: {e}"))?;
    }
    let mut target = Path::new(file).to_owned();
    if let Some(format) = &line.format {
        target.set_extension(format.to_ascii_lowercase());
    }
    if let (Some(directory), Some(name)) = (directory, target.file_name()) {
        target = Path::new(directory).join(name);
    }
    // Without an ending, and with a wrong one, the format stays.
    let kind = line.pictures.first().map(|picture| picture.kind.ending()).unwrap_or_default();
    let known =
        target.extension().is_some_and(|ending| crate::kind::Kind::from_ending(&ending.to_string_lossy()).is_some());
    let target = target.to_string_lossy();
    let target = if known || line.format.is_some() { target.into_owned() } else { format!("{kind}:{target}") };
    line.output.write(&line.pictures, &target).map_err(|e| format!("{file}: {e}"))
}
