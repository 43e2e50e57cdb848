//! `chmod`: files have no permission bits here, so a mode is checked and nothing is changed. Every file can be run as a script.

use std::path::Path;

use crate::cli;

const USAGE: &str = "Usage: chmod [-Rfvc] MODE FILE...
Files have no permission bits here: every file may be read, written and run as a script. So this checks MODE and that each
FILE is there, and changes nothing.
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let mut words = Vec::new();
        let (mut quiet, mut verbose, mut options) = (false, false, true);
        // A mode may begin with a dash, as in `chmod -x FILE`.
        for word in parser.raw_args()? {
            let word = word.to_string_lossy().into_owned();
            match word.strip_prefix('-') {
                Some("-") if options => options = false,
                Some(letters) if options && !letters.is_empty() && letters.chars().all(|c| "Rfvc".contains(c)) => {
                    quiet |= letters.contains('f');
                    verbose |= letters.contains('v');
                }
                Some("-recursive") if options => {}
                Some("-quiet" | "-silent") if options => quiet = true,
                Some("-verbose") if options => verbose = true,
                Some("-changes") if options => {}
                _ => words.push(word),
            }
        }
        let [mode, files @ ..] = words.as_slice() else { return Err("a mode and a file are needed".into()) };
        if !is_mode(mode) {
            return Err(format!("invalid mode: '{mode}'").into());
        }
        if files.is_empty() {
            return Err(format!("a file is needed after '{mode}'").into());
        }
        let mut code = 0;
        for file in files {
            if let Err(e) = std::fs::symlink_metadata(Path::new(file)) {
                code = 1;
                if !quiet {
                    eprintln!("chmod: cannot access '{file}': {}", cli::reason(&e));
                }
            } else if verbose {
                println!("mode of '{file}' is not kept here");
            }
        }
        Ok(code)
    })
}

/// `755`, `+x`, `u=rw,go-w`.
fn is_mode(text: &str) -> bool {
    if !text.is_empty() && text.len() <= 5 && text.bytes().all(|c| (b'0'..=b'7').contains(&c)) {
        return true;
    }
    text.split(',').all(|clause| {
        let rest = clause.trim_start_matches(['u', 'g', 'o', 'a']);
        rest.starts_with(['+', '-', '='])
            && rest.split(['+', '-', '=']).skip(1).all(|bits| bits.chars().all(|c| "rwxXstugo".contains(c)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes() {
        for mode in ["755", "0644", "+x", "u+x", "a=r", "u=rw,go-w", "-x", "g=u", "u+x-w", "ugo=", "1777"] {
            assert!(is_mode(mode), "{mode}");
        }
        for mode in ["", "x", "888", "u", "+q", "755x", "u+x,", "file"] {
            assert!(!is_mode(mode), "{mode}");
        }
    }
}
