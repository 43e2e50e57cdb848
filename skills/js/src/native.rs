//! The functions that the library in JavaScript is written over, as properties of one object that scripts never see.

mod bytes;
mod digest;
mod files;
mod http;
mod process;
pub mod scripts;

use boa_engine::object::builtins::{AlignedVec, JsArrayBuffer, JsUint8Array};
use boa_engine::object::{FunctionObjectBuilder, JsObject};
use boa_engine::{Context, JsArgs, JsError, JsNativeError, JsResult, JsString, JsValue, NativeFunction, js_string};

pub type Function = fn(&JsValue, &[JsValue], &mut Context) -> JsResult<JsValue>;

/// The object with all of them.
pub fn object(context: &mut Context) -> JsResult<JsObject> {
    let object = JsObject::with_null_proto();
    let lists: [&[(&str, Function)]; 6] = [
        bytes::FUNCTIONS,
        digest::FUNCTIONS,
        files::FUNCTIONS,
        http::FUNCTIONS,
        process::FUNCTIONS,
        scripts::FUNCTIONS,
    ];
    for (name, function) in lists.into_iter().flatten() {
        let native = NativeFunction::from_fn_ptr(*function);
        let function = FunctionObjectBuilder::new(context.realm(), native).name(js_string!(*name)).build();
        object.create_data_property_or_throw(js_string!(*name), function, context)?;
    }
    Ok(object)
}

pub fn text(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<String> {
    Ok(arguments.get_or_undefined(index).to_string(context)?.to_std_string_lossy())
}

/// A text, or the bytes that a typed array shows.
fn content(arguments: &[JsValue], index: usize, context: &mut Context) -> JsResult<Vec<u8>> {
    let value = arguments.get_or_undefined(index);
    match value.as_object() {
        Some(object) => JsUint8Array::from_object(object.clone())?.to_vec(context),
        None => Ok(value.to_string(context)?.to_std_string_lossy().into_bytes()),
    }
}

fn buffer(bytes: &[u8], context: &mut Context) -> JsResult<JsValue> {
    Ok(JsArrayBuffer::from_byte_block(AlignedVec::from_slice(64, bytes), context)?.into())
}

fn string(text: &str) -> JsValue {
    JsString::from(text).into()
}

/// An `Error` with a `code`, as Node throws it.
pub fn error(code: &str, message: &str, context: &mut Context) -> JsError {
    with_code(JsNativeError::error().with_message(message.to_owned()), code, context)
}

pub fn with_code(error: JsNativeError, code: &str, context: &mut Context) -> JsError {
    let object = error.into_opaque(context);
    // A plain object takes every property.
    let _ = object.set(js_string!("code"), JsString::from(code), false, context);
    JsError::from_opaque(object.into())
}
