//! `js` and `node`: JavaScript on the engine boa, with modules, files, arguments, input and other commands; `npm` and `npx` are a program for
//! it.

mod library;
mod loader;
mod native;
mod resolve;
mod run;
mod types;

use std::io::Read;

use run::{Failed, Runtime};

const USAGE: &str = "Usage: js [FILE [ARG]...]
       js -e CODE [ARG]...     run CODE
       js -p CODE [ARG]...     run CODE and print its value
Run JavaScript from a file or from standard input. `node` is the same command.

  require('./x')  import './x.js'        modules from files, JSON, and packages in node_modules
  require('node:fs') and so on           assert buffer child_process crypto events fs http https module os path
                                         process querystring readline stream timers url util
  await fetch(url)                       HTTP and HTTPS; `kiso network` says which hosts can be reached
  print(...)  scriptArgs                 console.log and the arguments
  readFile(path)  writeFile(path, text)  the same as fs.readFileSync and so on
  readStdin()  readLines()               all of standard input, as a text or as an array
Types of TypeScript are left out, in files that end in .ts, .mts or .cts.
";

/// The program that `npm` and `npx` are.
const NPM: &str = include_str!("npm.js");

/// The exit code of node when an exception is not caught.
const UNCAUGHT: i32 = 1;

/// The exit code of node when an option is wrong.
const BAD_OPTION: i32 = 9;

/// Options that change nothing here.
const IGNORED: [&str; 9] = [
    "--enable-source-maps",
    "--experimental-strip-types",
    "--no-deprecation",
    "--no-warnings",
    "--trace-uncaught",
    "--trace-warnings",
    "--unhandled-rejections=strict",
    "--unhandled-rejections=throw",
    "--use-strict",
];

enum Program {
    Code { code: String, print: bool, syntax: Syntax },
    File(String),
    Input { syntax: Syntax },
}

/// The syntax of code that lies in no file.
#[derive(Clone, Copy, Default)]
pub struct Syntax {
    /// It is a module for `import`, whatever it looks like.
    pub is_module: bool,
    /// It has types.
    pub is_typed: bool,
}

fn main() {
    command::start();
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or("js").to_owned();
    std::process::exit(run(&name, arguments.collect()));
}

fn run(name: &str, arguments: Vec<String>) -> i32 {
    if ["npm", "npx"].contains(&name) {
        let words: Vec<String> = [vec![name.to_owned()], arguments].concat();
        let done = Runtime::new("", &words).map(|mut runtime| {
            runtime.evaluate(NPM, "[npm]", false, Syntax::default()).and_then(|()| runtime.finish())
        });
        return match done {
            Ok(Ok(code)) => code,
            Ok(Err(Failed)) => UNCAUGHT,
            Err(error) => {
                eprintln!("{name}: {error}");
                UNCAUGHT
            }
        };
    }
    let (program, words) = match parse(name, arguments) {
        Ok(Some(parsed)) => parsed,
        Ok(None) => return 0,
        Err(message) => {
            eprintln!("{name}: {message}");
            return BAD_OPTION;
        }
    };
    let path = match &program {
        Program::File(path) => path.as_str(),
        Program::Input { .. } if words.is_empty() => "",
        Program::Input { .. } => "-",
        Program::Code { .. } => "",
    };
    let mut runtime = match Runtime::new(path, &words) {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{name}: {error}");
            return UNCAUGHT;
        }
    };
    let started = match program {
        Program::Code { code, print, syntax } => runtime.evaluate(&code, "[eval]", print, syntax),
        Program::File(path) => runtime.start(&path),
        Program::Input { syntax } => match read_stdin() {
            Ok(bytes) => runtime.evaluate(&String::from_utf8_lossy(&bytes), "[stdin]", false, syntax),
            Err(e) => {
                eprintln!("{name}: standard input: {e}");
                return UNCAUGHT;
            }
        },
    };
    match started.and_then(|()| runtime.finish()) {
        Ok(code) => code,
        Err(Failed) => UNCAUGHT,
    }
}

/// The program and the words for it; nothing if there was only something to print.
fn parse(name: &str, arguments: Vec<String>) -> Result<Option<(Program, Vec<String>)>, String> {
    let mut code = None;
    let (mut print, mut syntax) = (false, Syntax::default());
    let mut rest = arguments.into_iter().peekable();
    while let Some(option) = rest.next_if(|word| word.starts_with('-') && word != "-") {
        let (option, value) = match option.split_once('=') {
            Some((before, value)) if ["--eval", "--print", "--input-type"].contains(&before) => {
                (before.to_owned(), Some(value.to_owned()))
            }
            _ => (option, None),
        };
        match option.as_str() {
            "--help" | "-h" => {
                print!("{USAGE}");
                return Ok(None);
            }
            "--version" | "-v" if name.starts_with("node") => {
                println!("v{}", library::NODE_VERSION);
                return Ok(None);
            }
            "--version" | "-v" => {
                println!("js (kiso) {}", env!("CARGO_PKG_VERSION"));
                return Ok(None);
            }
            "-e" | "--eval" | "-p" | "--print" | "-pe" => {
                print |= option.starts_with("-p") || option == "--print";
                let given = value.or_else(|| rest.next());
                code = Some(given.ok_or_else(|| format!("{option} requires an argument"))?);
            }
            "--input-type" => {
                let kind = value.or_else(|| rest.next()).unwrap_or_default();
                let (module, is_typed) = match kind.strip_suffix("-typescript") {
                    Some(module) => (module, true),
                    None => (kind.as_str(), false),
                };
                let is_module = match module {
                    "module" => true,
                    "commonjs" => false,
                    _ => {
                        let kinds = "\"module\", \"commonjs\", \"module-typescript\" or \"commonjs-typescript\"";
                        return Err(format!("--input-type must be {kinds}"));
                    }
                };
                syntax = Syntax { is_module, is_typed };
            }
            "--" => break,
            option if IGNORED.contains(&option) => {}
            _ => return Err(format!("bad option: {option} (see {name} --help)")),
        }
    }
    if let Some(code) = code {
        return Ok(Some((Program::Code { code, print, syntax }, rest.collect())));
    }
    let program = match rest.next() {
        Some(path) if path != "-" => Program::File(path),
        _ => Program::Input { syntax },
    };
    Ok(Some((program, rest.collect())))
}

/// All of standard input.
fn read_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}
