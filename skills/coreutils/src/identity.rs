//! `whoami`, `id`, `hostname`, `uname` and `arch`: who a command line is, and where. There is one user, whom `stat` names as owner.

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
        println!("{}", host());
        Ok(0)
    })
}

fn host() -> String {
    std::env::var("HOSTNAME").unwrap_or_else(|_| USER.to_owned())
}

const UNAME: &str = "Usage: uname [-a | -snrvmpio]
Print what this system is; with no option, its kernel's name (-s).

  -a, --all                what is known of all of these, in this order
  -s, --kernel-name
  -n, --nodename           as `hostname` prints it
  -r, --kernel-release
  -v, --kernel-version
  -m, --machine
  -p, --processor
  -i, --hardware-platform
  -o, --operating-system
";

const MACHINE: &str = "wasm32";

pub fn arch(arguments: Vec<String>) -> i32 {
    cli::run(arguments, "Usage: arch\nPrint the kind of machine, as `uname -m` does.\n", 1, |mut parser| {
        match parser.next()? {
            Some(other) => Err(other.unexpected().into()),
            None => {
                println!("{MACHINE}");
                Ok(0)
            }
        }
    })
}

/// The options of `uname`, in the order in which their values are printed.
const SYSTEM: [(char, &str); 8] = [
    ('s', "kernel-name"),
    ('n', "nodename"),
    ('r', "kernel-release"),
    ('v', "kernel-version"),
    ('m', "machine"),
    ('p', "processor"),
    ('i', "hardware-platform"),
    ('o', "operating-system"),
];

pub fn uname(arguments: Vec<String>) -> i32 {
    cli::run(arguments, UNAME, 1, |mut parser| {
        let mut asked = String::new();
        let known = |of: char| of != 'p' && of != 'i';
        while let Some(argument) = parser.next()? {
            let option = match &argument {
                Short('a') | Long("all") => {
                    asked.extend(SYSTEM.iter().map(|(letter, _)| *letter).filter(|letter| known(*letter)));
                    continue;
                }
                Short(letter) => SYSTEM.iter().find(|(known, _)| known == letter),
                Long(name) => SYSTEM.iter().find(|(_, known)| known == name),
                Value(_) => None,
            };
            match option {
                Some((letter, _)) => asked.push(*letter),
                None => return Err(argument.unexpected().into()),
            }
        }
        if asked.is_empty() {
            asked.push('s');
        }
        let parts = SYSTEM.iter().filter(|(letter, _)| asked.contains(*letter)).map(|(letter, _)| match letter {
            's' => "wasi".to_owned(),
            'n' => host(),
            'm' => MACHINE.to_owned(),
            'o' => "WASI".to_owned(),
            // Of a kernel that nobody numbers.
            'r' | 'v' => "0.0.0".to_owned(),
            _ => "unknown".to_owned(),
        });
        println!("{}", parts.collect::<Vec<_>>().join(" "));
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
