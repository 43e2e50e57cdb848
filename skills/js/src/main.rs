//! `js`: JavaScript on the engine boa, with files, arguments and input.

mod console;
mod host;

use std::io::Read;

use boa_engine::{Context, JsError, JsResult, JsValue, Source};

const USAGE: &str = "Usage: js [FILE [ARG]...]
       js -e CODE [ARG]...     run CODE
       js -p CODE [ARG]...     run CODE and print its value
Run JavaScript from a file or from standard input.

  console.log(...)  print(...)           scriptArgs, process.argv, process.env, process.exit(code)
  readFile(path)  writeFile(path, text)  the same as require('fs').readFileSync and so on
  readStdin()  readLines()               all of standard input, as a text or as an array
There are no modules from elsewhere, no network and no timers.
";

/// What node ends with when an exception is not caught.
const UNCAUGHT: i32 = 1;

/// Of an exception's text; an endless recursion has fifty.
const MOST_LINES: usize = 10;

fn main() {
    command::start();
    std::process::exit(run(std::env::args().skip(1).collect()));
}

fn run(mut arguments: Vec<String>) -> i32 {
    let mut print = false;
    let source = match arguments.first().map(String::as_str) {
        Some("--help") => {
            print!("{USAGE}");
            return 0;
        }
        Some("--version") => {
            println!("js (kiso) {}", env!("CARGO_PKG_VERSION"));
            return 0;
        }
        Some(option @ ("-e" | "--eval" | "-p" | "--print" | "-pe")) => {
            print = option.contains('p');
            arguments.remove(0);
            if arguments.is_empty() {
                eprintln!("js: code is needed after the option");
                return 9;
            }
            std::mem::replace(&mut arguments[0], "[eval]".to_owned())
        }
        Some(option) if option.starts_with('-') && option != "-" => {
            eprintln!("js: bad option: {option} (see js --help)");
            return 9;
        }
        path => {
            let path = path.unwrap_or("-").to_owned();
            let text = if path == "-" { read_stdin() } else { std::fs::read_to_string(&path) };
            match text {
                Ok(text) => text,
                Err(e) => {
                    eprintln!("js: {path}: {e}");
                    return UNCAUGHT;
                }
            }
        }
    };
    let mut context = Context::default();
    match evaluate(&source, &arguments, print, &mut context) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{}", describe(&error));
            UNCAUGHT
        }
    }
}

fn evaluate(source: &str, arguments: &[String], print: bool, context: &mut Context) -> JsResult<()> {
    // A script that was made for node may name its interpreter in the first line.
    let source = if source.starts_with("#!") { format!("//{source}") } else { source.to_owned() };
    let inspect = host::install(arguments, context)?;
    let value = context.eval(Source::from_bytes(&source))?;
    context.run_jobs()?;
    if print && let Some(inspect) = inspect.as_callable() {
        let text = inspect.call(&JsValue::undefined(), &[value], context)?.to_string(context)?;
        println!("{}", text.to_std_string_lossy());
    }
    Ok(())
}

/// The exception with the innermost of the functions that it came through.
fn describe(error: &JsError) -> String {
    let text = error.to_string();
    let lines: Vec<&str> = text.lines().take(MOST_LINES).collect();
    format!("Uncaught {}", lines.join("\n"))
}

/// All of standard input, which need not be valid UTF-8.
fn read_stdin() -> std::io::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
