//! Standard output and error for a script.

use std::io::{self, Write};

use boa_engine::{Context, JsArgs, JsNativeError, JsResult, JsValue};

pub fn write(arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    write_to(io::stdout(), arguments, context)
}

pub fn write_error(arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    write_to(io::stderr(), arguments, context)
}

fn write_to(mut stream: impl Write, arguments: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let text = arguments.get_or_undefined(0).to_string(context)?.to_std_string_lossy();
    stream.write_all(text.as_bytes()).map_err(|e| JsNativeError::error().with_message(e.to_string()))?;
    Ok(JsValue::undefined())
}
