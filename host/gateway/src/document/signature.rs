//! Describes operations by the types in their handlers' signatures.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Sse;
use schemars::JsonSchema;
use serde_json::{Value, json};

use super::{Operation, contains};
use crate::App;
use crate::auth::Who;
use crate::error::ApiError;
use crate::wire::{
    Body, Created, Either, EventBody, FileBody, Html, JsonLines, LargeBody, Metrics, NoContent, PageFile, Path, Query,
    Queued, SentFile, WasmBody,
};

/// A handler whose types describe its inputs and outputs.
pub(crate) trait Handler<P> {
    fn describe(&self, operation: &mut Operation<'_>);
}

macro_rules! handlers {
    ($(($($part:ident)*))*) => {$(
        impl<F, Fut, R, $($part),*> Handler<($($part,)*)> for F
        where
            F: Fn($($part),*) -> Fut,
            Fut: Future<Output = R>,
            R: Describe,
            $($part: Describe,)*
        {
            fn describe(&self, operation: &mut Operation<'_>) {
                $($part::describe(operation);)*
                R::describe(operation);
            }
        }
    )*};
}

handlers!(() (A) (A B) (A B C) (A B C D) (A B C D E));

/// A type in a handler's signature that describes a part of the operation.
pub(crate) trait Describe {
    fn describe(operation: &mut Operation<'_>);
}

macro_rules! silent {
    ($($part:ty),*) => {$(
        impl Describe for $part {
            fn describe(_: &mut Operation<'_>) {}
        }
    )*};
}

silent!(Who, State<App>, HeaderMap, Parts);

impl<T: JsonSchema> Describe for Path<T> {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.input::<T>();
        let schemas = match schema.get("prefixItems") {
            Some(Value::Array(schemas)) => schemas.clone(),
            _ => vec![schema],
        };
        for (name, schema) in std::mem::take(&mut operation.names).into_iter().zip(schemas) {
            operation.parameter("path", &name, true, schema);
        }
        operation.refuses(&[404]);
    }
}

impl<T: JsonSchema> Describe for Query<T> {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.members::<T>();
        let required = schema.get("required").cloned().unwrap_or_default();
        let members = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, schema) in members {
            operation.parameter("query", &name, contains(&required, &name), schema);
        }
    }
}

impl<T: JsonSchema> Describe for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.input::<T>();
        operation.takes(true, "application/json", schema);
    }
}

impl<T: JsonSchema> Describe for LargeBody<T> {
    fn describe(operation: &mut Operation<'_>) {
        Body::<T>::describe(operation);
    }
}

impl Describe for FileBody {
    fn describe(operation: &mut Operation<'_>) {
        // A missing body means an empty file.
        operation.takes(false, "application/octet-stream", json!({ "type": "string", "format": "binary" }));
    }
}

impl Describe for EventBody {
    fn describe(operation: &mut Operation<'_>) {
        // The sender of the event chooses the structure.
        operation.takes(true, "application/json", json!({}));
    }
}

impl Describe for WasmBody {
    fn describe(operation: &mut Operation<'_>) {
        operation.takes(true, "application/wasm", json!({ "type": "string", "format": "binary" }));
    }
}

impl<R: Describe> Describe for Result<R, ApiError> {
    fn describe(operation: &mut Operation<'_>) {
        R::describe(operation);
    }
}

/// A response with additional headers.
impl<R: Describe> Describe for (HeaderMap, R) {
    fn describe(operation: &mut Operation<'_>) {
        R::describe(operation);
    }
}

impl<A: Describe, B: Describe> Describe for Either<A, B> {
    fn describe(operation: &mut Operation<'_>) {
        A::describe(operation);
        B::describe(operation);
    }
}

macro_rules! json_answers {
    ($($answer:ident $status:literal)*) => {$(
        impl<T: JsonSchema> Describe for $answer<T> {
            fn describe(operation: &mut Operation<'_>) {
                let schema = operation.output::<T>();
                operation.answers($status, "application/json", schema);
            }
        }
    )*};
}

json_answers!(Json 200 Created 201 Queued 202);

macro_rules! text_answers {
    ($($answer:ty, $media_type:literal;)*) => {$(
        impl Describe for $answer {
            fn describe(operation: &mut Operation<'_>) {
                operation.answers(200, $media_type, json!({ "type": "string" }));
            }
        }
    )*};
}

text_answers! { Html, "text/html"; Metrics, "text/plain"; JsonLines, "application/jsonl"; }

impl<S> Describe for Sse<S> {
    fn describe(operation: &mut Operation<'_>) {
        operation.answers(200, "text/event-stream", json!({ "type": "string" }));
    }
}

impl Describe for NoContent {
    fn describe(operation: &mut Operation<'_>) {
        operation.sends(&[204]);
    }
}

impl Describe for PageFile {
    fn describe(operation: &mut Operation<'_>) {
        operation.sends(&[200]);
    }
}

/// A file has its own media type, and a browser may request a part of it.
impl Describe for SentFile {
    fn describe(operation: &mut Operation<'_>) {
        operation.sends(&[200, 206, 304, 416]);
    }
}
