//! How values are printed.

use std::io::Write;

use boa_engine::{Context, JsArgs, JsError, JsNativeError, JsResult, JsValue};

/// The arguments with blanks between them, texts as they are and other values as they would be written.
pub fn write(arguments: &[JsValue], to_stderr: bool, context: &mut Context) -> JsResult<JsValue> {
    let mut line: Vec<String> = Vec::new();
    for argument in arguments {
        line.push(show(argument, context));
    }
    let line = line.join(" ") + "\n";
    let done =
        if to_stderr { std::io::stderr().write_all(line.as_bytes()) } else { std::io::stdout().write_all(line.as_bytes()) };
    done.map_err(|e| failed(&e))?;
    Ok(JsValue::undefined())
}

/// A text without a newline.
pub fn write_raw(arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let text = arguments.get_or_undefined(0).to_string(context)?.to_std_string_lossy();
    std::io::stdout().write_all(text.as_bytes()).map_err(|e| failed(&e))?;
    Ok(JsValue::undefined())
}

fn failed(error: &std::io::Error) -> JsError {
    JsNativeError::error().with_message(error.to_string()).into()
}

/// A value as `console.log` shows it.
pub fn show(value: &JsValue, context: &mut Context) -> String {
    if let Some(text) = value.as_string() {
        return text.to_std_string_lossy();
    }
    let Some(object) = value.as_object() else { return value.display().to_string() };
    if object.is_array() || object.is_ordinary() {
        return value.display_obj(false);
    }
    match value.to_string(context) {
        Ok(text) if !object.is_callable() && text.to_std_string_lossy() != "[object Object]" => text.to_std_string_lossy(),
        _ => value.display().to_string(),
    }
}
