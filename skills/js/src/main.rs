//! `js` and `node`: JavaScript on the engine boa, with modules, files, arguments, input and other commands.

mod library;
mod loader;
mod native;
mod resolve;
mod run;

use std::io::Read;

use run::{Failed, Runtime};

const USAGE: &str = "Usage: js [FILE [ARG]...]
       js -e CODE [ARG]...     run CODE
       js -p CODE [ARG]...     run CODE and print its value
Run JavaScript from a file or from standard input. `node` is the same command.

  require('./x')  import './x.js'        modules from files, JSON, and packages in node_modules
  require('node:fs') and so on           assert buffer child_process crypto events fs module os path process
                                         querystring readline stream timers url util
  print(...)  scriptArgs                 console.log and the arguments
  readFile(path)  writeFile(path, text)  the same as fs.readFileSync and so on
  readStdin()  readLines()               all of standard input, as a text or as an array
There is no npm, no network and no TypeScript.
";

/// The exit code of node when an exception is not caught.
const UNCAUGHT: i32 = 1;

/// The exit code of node when an option is wrong.
const BAD_OPTION: i32 = 9;

/// Options that change nothing here.
const IGNORED: [&str; 8] = [
    "--enable-source-maps",
    "--no-deprecation",
    "--no-warnings",
    "--trace-uncaught",
    "--trace-warnings",
    "--unhandled-rejections=strict",
    "--unhandled-rejections=throw",
    "--use-strict",
];

enum Program {
    Code { code: String, print: bool, is_module: bool },
    File(String),
    Input { is_module: bool },
}

fn main() {
    command::start();
    let mut arguments = std::env::args();
    let name = arguments.next().unwrap_or_default();
    let name = name.rsplit('/').next().unwrap_or("js").to_owned();
    std::process::exit(run(&name, arguments.collect()));
}

fn run(name: &str, arguments: Vec<String>) -> i32 {
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
        Program::Code { code, print, is_module } => runtime.evaluate(&code, "[eval]", print, is_module),
        Program::File(path) => runtime.start(&path),
        Program::Input { is_module } => match read_stdin() {
            Ok(bytes) => runtime.evaluate(&String::from_utf8_lossy(&bytes), "[stdin]", false, is_module),
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
    let (mut print, mut is_module) = (false, false);
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
                is_module = match kind.as_str() {
                    "module" => true,
                    "commonjs" => false,
                    _ => return Err("--input-type must be \"module\" or \"commonjs\"".to_owned()),
                };
            }
            "--" => break,
            option if IGNORED.contains(&option) => {}
            option if option.contains("strip-types") => {
                return Err(format!("bad option: {option}; TypeScript does not run here"));
            }
            _ => return Err(format!("bad option: {option} (see {name} --help)")),
        }
    }
    if let Some(code) = code {
        return Ok(Some((Program::Code { code, print, is_module }, rest.collect())));
    }
    let program = match rest.next() {
        Some(path) if path != "-" => Program::File(path),
        _ => Program::Input { is_module },
    };
    Ok(Some((program, rest.collect())))
}

/// All of standard input.
fn read_stdin() -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}
