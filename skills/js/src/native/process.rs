//! The process itself: its streams, its directory, time, and other commands of the line.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use boa_engine::object::builtins::JsArray;
use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsValue, js_string};
use command::spawn;

use super::files::failed;
use super::{Function, buffer, content, string, text};

pub const FUNCTIONS: &[(&str, Function)] = &[
    ("print", print),
    ("stdin", |_, _, context| {
        let bytes = crate::read_stdin().map_err(|e| failed("read", "/dev/stdin", None, &e, context))?;
        buffer(&bytes, context)
    }),
    ("hasInput", |_, _, _| Ok(command::process::has_input().into())),
    ("exit", |_, arguments, context| std::process::exit(arguments.get_or_undefined(0).to_i32(context)?)),
    ("cwd", |_, _, _| Ok(string(&std::env::current_dir().unwrap_or_default().to_string_lossy()))),
    ("chdir", |_, arguments, context| {
        let path = text(arguments, 0, context)?;
        // The library for WASI keeps `..` and links in the directory's name.
        let moved = std::fs::canonicalize(&path).and_then(std::env::set_current_dir);
        moved.map_err(|e| failed("chdir", &path, None, &e, context))?;
        Ok(JsValue::undefined())
    }),
    ("milliseconds", |_, _, _| {
        thread_local!(static START: Instant = Instant::now());
        Ok(START.with(|start| start.elapsed().as_secs_f64() * 1000.0).into())
    }),
    ("sleep", |_, arguments, context| {
        let milliseconds = arguments.get_or_undefined(0).to_u32(context)?;
        // Nobody waits for output that is already there.
        let _ = io::stdout().flush();
        std::thread::sleep(Duration::from_millis(milliseconds.into()));
        Ok(JsValue::undefined())
    }),
    ("start", start),
];

/// `print(stream, content)`.
fn print(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let (stream, bytes) = (arguments.get_or_undefined(0).to_i32(context)?, content(arguments, 1, context)?);
    let written = if stream == 2 { io::stderr().write_all(&bytes) } else { io::stdout().write_all(&bytes) };
    written.map_err(|e| JsNativeError::error().with_message(e.to_string()))?;
    Ok(JsValue::undefined())
}

/// Files of one process start with this, and end when the command does.
const PREFIX: &str = "/tmp/.node-";

/// `start(argv, env, cwd, input, [stdout, stderr], milliseconds, most)`: runs a command to its end. A stream is `pipe`, `inherit` or
/// `ignore`. Returns its exit code, both outputs, and why it did not end by itself.
fn start(_: &JsValue, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let argv = list(arguments, 0, context)?;
    let pairs = list(arguments, 1, context)?;
    let env = pairs.as_chunks::<2>().0.iter().map(|[name, value]| (name.clone(), value.clone())).collect();
    let cwd = text(arguments, 2, context)?;
    let input = arguments.get_or_undefined(3);
    let input = if input.is_undefined() { None } else { Some(content(arguments, 3, context)?) };
    let ways = list(arguments, 4, context)?;
    let milliseconds = arguments.get_or_undefined(5).to_u32(context)?;
    let most = arguments.get_or_undefined(6).to_length(context)?;
    let ended = run(argv, env, cwd, input, &ways, milliseconds, most);
    let (code, stdout, stderr, reason) = match ended {
        Ok(ended) => (ended.code, ended.output[0].clone(), ended.output[1].clone(), ended.reason.to_owned()),
        Err(Refused::Unknown(hint)) => (-1, Vec::new(), hint.unwrap_or_default().into_bytes(), "ENOENT".to_owned()),
        Err(Refused::Failed(reason)) => (-1, Vec::new(), Vec::new(), reason),
    };
    let values = [JsValue::from(code), buffer(&stdout, context)?, buffer(&stderr, context)?, string(&reason)];
    Ok(JsArray::from_iter(values, context).into())
}

pub fn list(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<Vec<String>> {
    let wrong = || JsNativeError::typ().with_message("an array is needed");
    let array = arguments.get_or_undefined(index).as_object().ok_or_else(wrong)?;
    let length = array.get(js_string!("length"), context)?.to_u32(context)?;
    (0..length).map(|index| Ok(array.get(index, context)?.to_string(context)?.to_std_string_lossy())).collect()
}

struct Ended {
    code: i32,
    output: [Vec<u8>; 2],
    /// Empty, or the code of the error that ended it.
    reason: &'static str,
}

enum Refused {
    Unknown(Option<String>),
    Failed(String),
}

/// Input and output go through files: a pipe that nobody empties would stop the command, and this process has one thread.
fn run(
    argv: Vec<String>,
    env: Vec<(String, String)>,
    cwd: String,
    input: Option<Vec<u8>>,
    ways: &[String],
    milliseconds: u32,
    most: u64,
) -> Result<Ended, Refused> {
    // The output of this process comes before what the command writes.
    let _ = io::stdout().flush();
    let files: [Scratch; 3] = std::array::from_fn(|_| Scratch::new());
    let inherited = spawn::inherited();
    let mut channels: Vec<(u32, &spawn::Channel)> = Vec::new();
    let opened = |number: usize, mode| {
        let path = files[number].0.to_string_lossy();
        spawn::open(&path, mode).map_err(|e| Refused::Failed(format!("{path}: {}", e.name())))
    };
    let given = match &input {
        Some(bytes) => {
            std::fs::write(&files[0].0, bytes).map_err(|e| Refused::Failed(e.to_string()))?;
            Some(opened(0, spawn::Mode::Read)?)
        }
        None => None,
    };
    channels.extend(given.iter().map(|channel| (0, channel)));
    let mut written = Vec::new();
    for (number, way) in (1..).zip(ways) {
        match way.as_str() {
            "inherit" => channels.extend(inherited.iter().filter(|(n, _)| *n as usize == number).map(|(n, c)| (*n, c))),
            "pipe" => written.push((number as u32, opened(number, spawn::Mode::Write)?)),
            _ => {}
        }
    }
    channels.extend(written.iter().map(|(number, channel)| (*number, channel)));
    let process =
        spawn::start(&spawn::Command { argv, program: None, env, cwd, channels }).map_err(|refusal| match refusal {
            spawn::Refusal::Unknown(hint) => Refused::Unknown(hint),
            spawn::Refusal::Failed(reason) => Refused::Failed(reason),
        })?;
    let (code, mut reason) = if milliseconds == 0 {
        (process.wait().into(), "")
    } else if let Some(code) = process.wait_for(milliseconds.into()) {
        (code.into(), "")
    } else {
        process.kill();
        (i32::from(process.wait()), "ETIMEDOUT")
    };
    drop(written);
    let mut output = [Vec::new(), Vec::new()];
    for (file, output) in files[1..].iter().zip(&mut output) {
        let Ok(file) = std::fs::File::open(&file.0) else { continue };
        file.take(most.saturating_add(1)).read_to_end(output).map_err(|e| Refused::Failed(e.to_string()))?;
        if output.len() as u64 > most {
            output.truncate(most as usize);
            reason = "ENOBUFS";
        }
    }
    Ok(Ended { code, output, reason })
}

/// A file that goes away with its value.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        thread_local!(static COUNT: Cell<u32> = const { Cell::new(0) });
        let number = COUNT.replace(COUNT.get().wrapping_add(1));
        let mut tag = [0; 8];
        // Without random bytes, the number still tells the files of this process apart.
        let _ = getrandom::fill(&mut tag);
        Self(Path::new(&format!("{PREFIX}{:016x}-{number}", u64::from_le_bytes(tag))).to_owned())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // One that was never made is gone already.
        let _ = std::fs::remove_file(&self.0);
    }
}
