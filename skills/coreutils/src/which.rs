//! `which`: whether there is such a command.

use command::spawn;
use lexopt::Arg::{Short, Value};

use crate::cli;

const USAGE: &str = "Usage: which [-a] NAME...
Print where each command is. Commands are no files here: all of them are in /bin, which cannot be looked into.
";

pub fn main(arguments: Vec<String>) -> i32 {
    cli::run(arguments, USAGE, 2, |mut parser| {
        let (mut code, mut asked) = (0, false);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('a' | 's') => {}
                Value(name) => {
                    asked = true;
                    let name = name.to_string_lossy();
                    if spawn::exists(&name) {
                        println!("/bin/{}", name.trim_start_matches("/bin/"));
                    } else {
                        code = 1;
                    }
                }
                other => return Err(other.unexpected().into()),
            }
        }
        Ok(if asked { code } else { 1 })
    })
}
