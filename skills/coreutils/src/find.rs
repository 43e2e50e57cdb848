//! `find`: GNU's tests and actions over a tree, in the order of names.

mod evaluate;
pub mod parse;
pub mod printf;

use std::time::SystemTime;

use walkdir::WalkDir;

use crate::cli;

const USAGE: &str = "Usage: find [-L] [PATH]... [EXPRESSION]
Look for files. The default path is the current directory, the default action -print.

  ( EXPR )  ! EXPR  -not EXPR  EXPR EXPR  -a  -o  ,
  -name GLOB  -iname GLOB  -path GLOB  -ipath GLOB  -regex RE  -iregex RE  -regextype TYPE  -lname GLOB
  -type [fdl,...]  -size [+-]N[cwbkMG]  -empty  -perm MODE  -newer FILE  -newermt DATE  -samefile FILE
  -mtime [+-]N  -mmin [+-]N (and -atime -amin -ctime -cmin, which mean the same here)  -true  -false
  -readable  -writable  -executable  -maxdepth N  -mindepth N  -depth  -daystart
  -print  -print0  -printf FORMAT  -ls  -fprint FILE  -delete  -prune  -quit
  -exec COMMAND {} ;  -exec COMMAND {} +  -execdir COMMAND {} ;
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 1, |mut parser| {
        let arguments = parser.raw_args()?.map(|a| a.to_string_lossy().into_owned()).collect();
        let command = parse::parse(arguments, SystemTime::now())?;
        let mut state = evaluate::State::new(command.now);
        for path in &command.paths {
            if !walk(&command, path, &mut state)? {
                break;
            }
        }
        state.finish(&command.expression)
    })
}

/// Returns whether the search goes on.
fn walk(command: &parse::Command, path: &str, state: &mut evaluate::State) -> Result<bool, cli::Error> {
    let walk = WalkDir::new(path)
        .follow_links(command.follow)
        .follow_root_links(command.follow)
        .contents_first(command.contents_first)
        .min_depth(command.min_depth)
        .max_depth(command.max_depth.max(command.min_depth))
        .sort_by_file_name();
    if command.max_depth < command.min_depth {
        return Ok(true);
    }
    let mut walk = walk.into_iter();
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // Under -L, a broken link is visited as a link.
            Err(e)
                if e.depth() >= command.min_depth
                    && let Some(link) = broken_link(&e) =>
            {
                link
            }
            Err(e) => {
                let shown = e.path().unwrap_or(path.as_ref()).to_string_lossy().into_owned();
                state.fail(&format!("\u{2018}{shown}\u{2019}: {}", cli::reason(&e.into())));
                continue;
            }
        };
        let is_dir = entry.file_type().is_dir();
        state.visit(&command.expression, &entry, path)?;
        if state.quit {
            return Ok(false);
        }
        if std::mem::take(&mut state.prune) && is_dir && !command.contents_first {
            walk.skip_current_dir();
        }
    }
    Ok(true)
}

/// Returns the entry of a broken link, if following it caused this error.
fn broken_link(error: &walkdir::Error) -> Option<walkdir::DirEntry> {
    let path = error.path()?;
    let not_found = error.io_error().is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound);
    let is_link = not_found && path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let alone = || WalkDir::new(path).max_depth(0).follow_root_links(false).into_iter().next();
    is_link.then(alone)?.and_then(Result::ok)
}
