//! `whoami`, `id` and `hostname`: who a command line is. There is one user, the one that `stat` names as owner.

use lexopt::Arg::{Long, Short, Value};

use crate::cli;

const USER: &str = "kiso";
const NUMBER: u32 = 1000;

pub fn whoami(arguments: Vec<String>) -> i32 {
    cli::run(arguments, "Usage: whoami\nPrint the name of the user, of which there is one here.\n", 1, |mut parser| {
        match parser.next()? {
            Some(other) => Err(other.unexpected().into()),
            None => {
                println!("{USER}");
                Ok(0)
            }
        }
    })
}

const HOSTNAME: &str = "Usage: hostname [-s | -f]
Print the name of this host. It is no machine's, and cannot be set.
";

pub fn hostname(arguments: Vec<String>) -> i32 {
    cli::run(arguments, HOSTNAME, 1, |mut parser| {
        while let Some(argument) = parser.next()? {
            match argument {
                Short('s' | 'f') | Long("short" | "fqdn" | "long") => {}
                Value(name) => return Err(format!("the name cannot be set to '{}'", name.to_string_lossy()).into()),
                other => return Err(other.unexpected().into()),
            }
        }
        println!("{}", std::env::var("HOSTNAME").unwrap_or_else(|_| USER.to_owned()));
        Ok(0)
    })
}

const ID: &str = "Usage: id [-u | -g | -G] [-n] [-r] [USER]
Print the user and its groups, of which there is one each.
";

pub fn id(arguments: Vec<String>) -> i32 {
    cli::run(arguments, ID, 1, |mut parser| {
        let (mut one, mut name) = (false, false);
        while let Some(argument) = parser.next()? {
            match argument {
                Short('u' | 'g' | 'G') | Long("user" | "group" | "groups") => one = true,
                Short('n') | Long("name") => name = true,
                Short('r') | Long("real") => {}
                Value(user) if user == USER => {}
                Value(user) => return Err(format!("'{}': no such user", user.to_string_lossy()).into()),
                other => return Err(other.unexpected().into()),
            }
        }
        match (one, name) {
            (true, true) => println!("{USER}"),
            (true, false) => println!("{NUMBER}"),
            (false, true) => return Err("-n needs -u, -g or -G".into()),
            (false, false) => println!("uid={NUMBER}({USER}) gid={NUMBER}({USER}) groups={NUMBER}({USER})"),
        }
        Ok(0)
    })
}
