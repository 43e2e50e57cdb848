//! What a script finds beside the language: `console`, `process`, `require('fs')` and functions for files.

use std::fs;

use boa_engine::{Context, JsArgs, JsError, JsNativeError, JsResult, JsValue, NativeFunction, Source, js_string};

use crate::console;

/// The rest is written in JavaScript over the functions below.
const PRELUDE: &str = include_str!("prelude.js");

type Function = fn(&JsValue, &[JsValue], &mut Context) -> JsResult<JsValue>;

/// Returns the function that shows a value as `console.log` does.
pub fn install(arguments: &[String], context: &mut Context) -> JsResult<JsValue> {
    let functions: [(&str, usize, Function); 10] = [
        ("__error", 1, |_, args, context| console::write_error(args, context)),
        ("__raw", 1, |_, args, context| console::write(args, context)),
        ("__exit", 1, |_, args, context| {
            let code = args.get_or_undefined(0).to_i32(context)?;
            std::process::exit(code)
        }),
        ("__stdin", 0, |_, _, _| Ok(js_string!(crate::read_stdin().map_err(|e| failed("stdin", &e))?.as_str()).into())),
        ("__read", 1, |_, args, context| {
            let path = text(args, 0, context)?;
            let bytes = fs::read(&path).map_err(|e| failed(&path, &e))?;
            Ok(js_string!(String::from_utf8_lossy(&bytes).as_ref()).into())
        }),
        ("__write", 2, |_, args, context| {
            let (path, content) = (text(args, 0, context)?, text(args, 1, context)?);
            fs::write(&path, content).map_err(|e| failed(&path, &e))?;
            Ok(JsValue::undefined())
        }),
        ("__append", 2, |_, args, context| {
            let (path, content) = (text(args, 0, context)?, text(args, 1, context)?);
            let file = fs::File::options().create(true).append(true).open(&path);
            file.and_then(|mut file| std::io::Write::write_all(&mut file, content.as_bytes()))
                .map_err(|e| failed(&path, &e))?;
            Ok(JsValue::undefined())
        }),
        ("__list", 1, |_, args, context| {
            let path = text(args, 0, context)?;
            let mut names = Vec::new();
            for entry in fs::read_dir(&path).map_err(|e| failed(&path, &e))? {
                names.push(entry.map_err(|e| failed(&path, &e))?.file_name().to_string_lossy().into_owned());
            }
            names.sort();
            Ok(js_string!(names.join("\0").as_str()).into())
        }),
        ("__kind", 1, |_, args, context| {
            let path = text(args, 0, context)?;
            let kind = match fs::metadata(&path) {
                Ok(meta) if meta.is_dir() => "d0".to_owned(),
                Ok(meta) => format!("f{}", meta.len()),
                Err(_) => String::new(),
            };
            Ok(js_string!(kind.as_str()).into())
        }),
        ("__change", 2, |_, args, context| {
            let (what, path) = (text(args, 0, context)?, text(args, 1, context)?);
            let done = match what.as_str() {
                "mkdir" => fs::create_dir_all(&path),
                "rmdir" => fs::remove_dir(&path),
                "tree" => fs::remove_dir_all(&path),
                "rename" => fs::rename(&path, text(args, 2, context)?),
                _ => fs::remove_file(&path),
            };
            done.map_err(|e| failed(&path, &e))?;
            Ok(JsValue::undefined())
        }),
    ];
    for (name, length, function) in functions {
        context.register_global_builtin_callable(name.into(), length, NativeFunction::from_fn_ptr(function))?;
    }
    // The escapes of a Rust text are escapes of JavaScript too.
    let json = |text: &str| format!("{text:?}");
    let list = arguments.iter().map(|argument| json(argument)).collect::<Vec<_>>().join(",");
    let env: Vec<String> = std::env::vars().map(|(name, value)| format!("{}:{}", json(&name), json(&value))).collect();
    let cwd = std::env::current_dir().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
    let source = format!("{PRELUDE}([{list}],{{{}}},{});", env.join(","), json(&cwd));
    context.eval(Source::from_bytes(&source))
}

fn text(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<String> {
    Ok(arguments.get_or_undefined(index).to_string(context)?.to_std_string_lossy())
}

fn failed(path: &str, error: &std::io::Error) -> JsError {
    let code = match error.kind() {
        std::io::ErrorKind::NotFound => "ENOENT: ",
        std::io::ErrorKind::AlreadyExists => "EEXIST: ",
        std::io::ErrorKind::IsADirectory => "EISDIR: ",
        std::io::ErrorKind::PermissionDenied => "EACCES: ",
        _ => "",
    };
    JsNativeError::error().with_message(format!("{code}{path}: {error}")).into()
}
