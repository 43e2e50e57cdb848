//! Exceptions of guests in other languages, as their runtimes write them to standard error before they end.

/// Returns an exception and where it was thrown, on one line: "TypeError: no such city, at find (skill.js:4:56)". `None` if the
/// guest did not end by an exception.
pub(super) fn find(stderr: &str) -> Option<String> {
    let text = python(stderr).or_else(|| quickjs(stderr)).or_else(|| spidermonkey(stderr))?;
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// CPython's traceback, with the last call last. componentize-py panics after it. A traceback that the program printed itself
/// before it ended in another way is ignored.
fn python(stderr: &str) -> Option<String> {
    const BEGINS: &str = "Traceback (most recent call last):";
    const ENDS: &str = "Python function threw an unexpected exception";
    let (_, traceback) = stderr[..stderr.rfind(ENDS)?].rsplit_once(BEGINS)?;
    let mut place = None;
    for line in traceback.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(frame) = line.strip_prefix("  File \"") {
            place = python_place(frame).or(place);
        } else if !line.starts_with(' ') {
            return Some(with_place(line, place));
        }
    }
    None
}

/// `/0/skill.py", line 34, in run` as `run (skill.py:34)`. componentize-py numbers the directories that it was given.
fn python_place(frame: &str) -> Option<String> {
    let (path, rest) = frame.split_once("\", line ")?;
    let (line, function) = rest.split_once(", in ").unwrap_or((rest, "<module>"));
    let short = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let path = short.filter(|(number, _)| number.parse::<u32>().is_ok()).map_or(path, |(_, path)| path);
    Some(format!("{function} ({path}:{line})"))
}

/// componentize-qjs panics with the exception as Rust's `Debug` shows it.
fn quickjs(stderr: &str) -> Option<String> {
    let (_, exception) = stderr.rsplit_once("Exception { message: ")?;
    let (message, rest) = optional_text(exception)?;
    let stack = rest.strip_prefix(", stack: ").and_then(optional_text).and_then(|(stack, _)| stack).unwrap_or_default();
    let frames = || stack.lines().map(str::trim).filter_map(|line| line.strip_prefix("at "));
    // Functions of the engine have no place.
    let frame = frames().find(|frame| !frame.ends_with("(native)")).map(|frame| frame.replacen("(/", "(", 1));
    let message = message.filter(|message| !message.is_empty());
    Some(with_place(&message.unwrap_or_else(|| "an exception without a message".to_owned()), frame))
}

/// StarlingMonkey, the engine of componentize-js and jco, writes the exception and its stack and aborts.
fn spidermonkey(stderr: &str) -> Option<String> {
    const ENDS: &str = "Redirecting call to abort() to mozalloc_abort";
    let (message, stack) = stderr[..stderr.rfind(ENDS)?].rsplit_once("\nStack:\n")?;
    let message = message.lines().rev().find(|line| !line.trim().is_empty())?;
    let frame = stack.lines().next().and_then(|frame| frame.trim().split_once('@'));
    Some(with_place(
        message,
        frame.map(|(function, path)| format!("{function} ({})", path.rsplit('/').next().unwrap_or(path))),
    ))
}

fn with_place(exception: &str, place: Option<String>) -> String {
    match place {
        Some(place) => format!("{exception}, at {place}"),
        None => exception.to_owned(),
    }
}

/// Reads the `Debug` output of an `Option<String>` at the beginning of `text`. Returns it with the rest of the text.
fn optional_text(text: &str) -> Option<(Option<String>, &str)> {
    if let Some(rest) = text.strip_prefix("None") {
        return Some((None, rest));
    }
    let quoted = text.strip_prefix("Some(\"")?;
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Some((Some(value), quoted[index + 1..].strip_prefix(')')?)),
            '\\' => value.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                'u' => {
                    let code: String =
                        chars.by_ref().map(|(_, c)| c).take_while(|c| *c != '}').filter(|c| *c != '{').collect();
                    u32::from_str_radix(&code, 16).ok().and_then(char::from_u32)?
                }
                other => other,
            }),
            other => value.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_told_with_its_place() {
        for (stderr, told) in [
            (
                "Traceback (most recent call last):\n  File \"/1/kiso_app.py\", line 3, in run\n  File \"/0/skill.py\", line 34, in run\n    raise ValueError(\"x\")\n    ~~~~\n\
                 ValueError: no such city\n\nthread '<unnamed>' (1) panicked at runtime/src/lib.rs:1293:29:\n\
                 Python function threw an unexpected exception\nnote: run with `RUST_BACKTRACE=1`\n",
                Some("ValueError: no such city, at run (skill.py:34)"),
            ),
            // The last of two exceptions ended the call.
            (
                "Traceback (most recent call last):\n  File \"/0/a.py\", line 1, in f\nKeyError: 1\n\n\
                 During handling of the above exception, another exception occurred:\n\n\
                 Traceback (most recent call last):\n  File \"/python/json/decoder.py\", line 2, in g\nTypeError: second\n\
                 \nthread panicked:\nPython function threw an unexpected exception\n",
                Some("TypeError: second, at g (/python/json/decoder.py:2)"),
            ),
            // The program printed this, and ended in another way.
            (
                "Traceback (most recent call last):\n  File \"/0/a.py\", line 1, in f\nKeyError: 1\nmemory allocation failed\n",
                None,
            ),
            (
                "\nthread '<unnamed>' (1) panicked at crates/runtime/src/interpreter.rs:51:31:\nFailed to call 'run': Value(Exception(\n\
                 Exception { message: Some(\"it said \\\"no\\\" \\u{1b}[31m\\nagain\"), stack: Some(\"    at parse (native)\\n    at run (/skill.js:38:19)\\n\") })\n)\n",
                Some("it said \"no\"  [31m again, at run (skill.js:38:19)"),
            ),
            (
                "expected a string, received [undefined]\nStack:\n  _utf8AllocateAndEncode@/tmp/9678/sources/initializer.js:130:11\n  \
                 export_skill_0_1_0$run@/tmp/9678/sources/initializer.js:15122:45\n\nRedirecting call to abort() to mozalloc_abort\n\n",
                Some("expected a string, received [undefined], at _utf8AllocateAndEncode (initializer.js:130:11)"),
            ),
            ("Exception { message: Some(\"quiet\"), stack: Some(\"\") })\n)\n", Some("quiet")),
            ("Exception { message: None, stack: None })\n)\n", Some("an exception without a message")),
            // Cut off, because the output reached its limit.
            ("Exception { message: Some(\"qui", None),
            ("Exception { message: Some(\"\\u{110000}\"), stack: None }", None),
            ("thread 'main' panicked at a.rs:1:1:\nno such city\n", None),
            ("", None),
        ] {
            assert_eq!(find(stderr).as_deref(), told, "{stderr}");
        }
    }
}
