//! The OpenAPI document, generated from the tables of routes and from the signatures of their handlers, so that it cannot differ
//! from what a handler accepts and returns. The tables contain only what the types do not express.

pub(crate) mod signature;

use std::collections::BTreeMap;

use axum::http::Method;
use axum::routing::MethodRouter;
use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use self::signature::Handler;
use crate::App;
use crate::auth::Access;
use crate::error::{ErrorBody, openai};
use crate::wire::Letter;

/// A method and path.
pub(crate) struct Route {
    pub method: Method,
    /// In the router's syntax: `{*rest}` matches the rest of a path.
    pub path: &'static str,
    pub access: Access,
    /// Description: the lines of its doc comment.
    pub about: &'static [&'static str],
    /// Meaning of a status for this route, if it differs from the usual sentence.
    pub statuses: &'static [(u16, &'static str)],
    pub router: fn() -> MethodRouter<App>,
    pub describe: fn(&mut Operation<'_>),
}

/// A table of routes: doc comment, method, path, access rule and handler; then statuses with their meanings.
macro_rules! routes {
    ($( $(#[doc = $about:literal])+ $method:ident $path:literal $access:ident => $handler:path $(, $status:literal $why:literal)*; )*) => {
        pub(in crate) const ROUTES: &[$crate::document::Route] = &[$(
            $crate::document::Route {
                method: axum::http::Method::$method,
                path: $path,
                access: $crate::auth::Access::$access,
                about: &[$($about),+],
                statuses: &[$(($status, $why)),*],
                router: || axum::routing::on(axum::routing::MethodFilter::$method, $handler),
                describe: |operation| operation.add_handler(&$handler),
            },
        )*];
    };
}
pub(crate) use routes;

/// Returns the whole document for this version of kiso.
pub(crate) fn document<'r>(routes: impl Iterator<Item = &'r Route>) -> Map<String, Value> {
    let mut schemas = Schemas::new();
    let error = schemas.output::<ErrorBody>();
    let openai_error = schemas.output::<openai::ErrorBody>();
    let letter = schemas.output::<Letter>();
    let mut paths = Map::new();
    for route in routes {
        let path = route.path.replace("{*", "{");
        let mut operation = Operation::new(route, &path, &mut schemas);
        (route.describe)(&mut operation);
        let error = if openai::serves(route.path) { &openai_error } else { &error };
        let described = operation.finish(route, error);
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[route.method.as_str().to_lowercase()] = described;
    }
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "kiso",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Messages in, finished work out. Errors have the form of Error, and below /v1/ that of OpenAiError. Times are milliseconds since 1970 (UTC).",
        },
        "security": [{ "token": [] }, { "login": [] }],
        "paths": paths,
        "webhooks": {
            "delivery": {
                "post": {
                    "summary": "The request to a webhook's receiver; docs/webhooks.md says how to check that kiso sent it",
                    "requestBody": { "required": true, "content": { "application/json": { "schema": letter } } },
                    "responses": { "200": { "description": "The delivery has arrived; every other 2xx status means the same" } },
                },
            },
        },
        "components": {
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`kiso token add NAME` prints one. As long as there is none, programs of the same machine need none.",
                },
                "login": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": "kiso-8333",
                    "description": "Set by POST /login, named by the port that the daemon listens on. For the page alone: what changes something must have the header `x-kiso-page: 1`, and come from the same origin by Sec-Fetch-Site or Origin.",
                },
            },
            "schemas": schemas.finish(),
        },
    });
    match document {
        Value::Object(document) => document,
        other => unreachable!("a document is an object: {other}"),
    }
}

/// The schemas of inputs and outputs: a field with a default is optional in inputs and always present in outputs.
struct Schemas {
    read: SchemaGenerator,
    written: SchemaGenerator,
}

impl Schemas {
    fn new() -> Schemas {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        });
        Schemas {
            read: settings.clone().for_deserialize().into_generator(),
            written: settings.for_serialize().into_generator(),
        }
    }

    fn output<T: JsonSchema>(&mut self) -> Value {
        self.written.subschema_for::<T>().to_value()
    }

    /// Returns all schemas by name. Types with equal input and output schemas appear once.
    fn finish(mut self) -> Map<String, Value> {
        let mut all: BTreeMap<String, Value> = self.written.take_definitions(true).into_iter().collect();
        all.values_mut().for_each(|schema| walk(schema, &exact));
        for (name, mut schema) in self.read.take_definitions(true) {
            walk(&mut schema, &bounded);
            let known = all.entry(name.clone()).or_insert_with(|| schema.clone());
            assert_eq!(*known, schema, "{name} is read in another form than it is written");
        }
        all.into_iter().collect()
    }
}

/// Visits every object in a schema.
fn walk(schema: &mut Value, visit: &impl Fn(&mut Map<String, Value>)) {
    match schema {
        Value::Object(object) => {
            visit(object);
            object.values_mut().for_each(|inner| walk(inner, visit));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| walk(inner, visit)),
        _ => {}
    }
}

/// Joins the lines of a doc comment, because a description is one line.
fn unwrapped(object: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// In outputs, an optional member is never null; it is absent instead.
fn exact(object: &mut Map<String, Value>) {
    let required = object.get("required").cloned().unwrap_or_default();
    let members = object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    members.filter(|(name, _)| !contains(&required, name)).for_each(|(_, member)| not_null(member));
    unwrapped(object);
}

/// In inputs, limits an integer to the range of its type.
fn bounded(object: &mut Map<String, Value>) {
    let range = match object.get("format").and_then(Value::as_str) {
        Some("int64") => Some((json!(i64::MIN), json!(i64::MAX))),
        Some("uint32") => Some((json!(u32::MIN), json!(u32::MAX))),
        _ => None,
    };
    if let Some((least, most)) = range {
        object.entry("minimum").or_insert(least);
        object.entry("maximum").or_insert(most);
    }
    if object.get("default") == Some(&Value::Null) {
        object.shift_remove("default");
    }
    unwrapped(object);
}

/// Returns whether a value is a list that contains this name.
pub(crate) fn contains(names: &Value, name: &str) -> bool {
    names.as_array().is_some_and(|names| names.iter().any(|one| one == name))
}

fn not_null(member: &mut Value) {
    let Value::Object(member) = member else { return };
    if let Some(Value::Array(kinds)) = member.get_mut("type") {
        kinds.retain(|kind| kind != "null");
        if kinds.len() == 1 {
            let only = kinds.remove(0);
            member.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(forms)) = member.get_mut("anyOf") {
        forms.retain(|form| form["type"] != "null");
        if forms.len() == 1
            && let Value::Object(only) = forms.remove(0)
        {
            member.shift_remove("anyOf");
            member.extend(only);
        }
    }
    if member.get("default") == Some(&Value::Null) {
        member.shift_remove("default");
    }
}

/// An operation of the document, while the types of its handler are added.
pub(crate) struct Operation<'s> {
    schemas: &'s mut Schemas,
    /// Names of its path parameters.
    pub names: Vec<String>,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// Content of each response, by status.
    answers: BTreeMap<u16, Option<Value>>,
}

impl<'s> Operation<'s> {
    fn new(route: &Route, path: &str, schemas: &'s mut Schemas) -> Operation<'s> {
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let names = names.map(str::to_owned).collect();
        let mut operation = Operation { schemas, names, parameters: Vec::new(), body: None, answers: BTreeMap::new() };
        // Errors from checks before the handler, and errors that any write can cause.
        operation.refuses(&[400, 414]);
        if route.access != Access::Open {
            operation.refuses(&[401, 403, 429]);
        }
        if route.method != Method::GET {
            operation.refuses(&[503, 507]);
        }
        operation
    }

    /// Adds the types of a handler.
    pub(crate) fn add_handler<P>(&mut self, handler: &impl Handler<P>) {
        handler.describe(self);
    }

    /// Adds error responses, which all have the same schema.
    pub(crate) fn refuses(&mut self, statuses: &[u16]) {
        self.sends(statuses);
    }

    pub(crate) fn answers(&mut self, status: u16, media_type: &str, schema: Value) {
        let content = self.answers.entry(status).or_default().get_or_insert_with(|| json!({}));
        content[media_type] = json!({ "schema": schema });
    }

    pub(crate) fn takes(&mut self, required: bool, media_type: &str, schema: Value) {
        self.body = Some(json!({ "required": required, "content": { media_type: { "schema": schema } } }));
        self.refuses(&[408, 413]);
    }

    /// Returns the schema of an input type.
    pub(crate) fn input<T: JsonSchema>(&mut self) -> Value {
        self.schemas.read.subschema_for::<T>().to_value()
    }

    /// The same with the members inline, even for a named type.
    pub(crate) fn members<T: JsonSchema>(&mut self) -> Value {
        T::json_schema(&mut self.schemas.read).to_value()
    }

    /// Returns the schema of an output type.
    pub(crate) fn output<T: JsonSchema>(&mut self) -> Value {
        self.schemas.output::<T>()
    }

    /// Adds responses without a schema for the body.
    pub(crate) fn sends(&mut self, statuses: &[u16]) {
        self.answers.extend(statuses.iter().map(|status| (*status, None)));
    }

    /// Adds a parameter, with the description from its schema.
    pub(crate) fn parameter(&mut self, place: &str, name: &str, required: bool, mut schema: Value) {
        not_null(&mut schema);
        walk(&mut schema, &bounded);
        let about = schema.as_object_mut().and_then(|schema| schema.shift_remove("description"));
        let mut parameter = json!({ "name": name, "in": place, "required": required });
        if let Some(about) = about {
            parameter["description"] = about;
        }
        parameter["schema"] = schema;
        self.parameters.push(parameter);
    }

    fn finish(mut self, route: &Route, error: &Value) -> Value {
        let own: BTreeMap<u16, &str> = route.statuses.iter().copied().collect();
        for status in own.keys() {
            self.answers.entry(*status).or_default();
        }
        let mut responses = Map::new();
        for (status, content) in self.answers {
            let mut response = json!({ "description": own.get(&status).copied().unwrap_or_else(|| usual(status)) });
            // The response for an unsatisfiable range has no body.
            let refused = (status >= 400 && status != 416).then(|| json!({ "application/json": { "schema": error } }));
            if let Some(content) = content.or(refused) {
                response["content"] = content;
            }
            responses.insert(status.to_string(), response);
        }
        let lines: Vec<_> = route.about.iter().map(|line| line.trim()).collect();
        let mut operation = json!({ "summary": lines[0] });
        if lines.len() > 1 {
            operation["description"] = lines[1..].join(" ").into();
        }
        match route.access {
            Access::Open => operation["security"] = json!([]),
            Access::Chat => {}
            Access::Admin => operation["security"] = json!([{ "token": ["admin"] }, { "login": ["admin"] }]),
        }
        if !self.parameters.is_empty() {
            operation["parameters"] = self.parameters.into();
        }
        if let Some(body) = self.body {
            operation["requestBody"] = body;
        }
        operation["responses"] = responses.into();
        operation
    }
}

/// The default meaning of a status, for routes that do not define their own.
fn usual(status: u16) -> &'static str {
    match status {
        200 => "The request succeeded",
        201 => "Created",
        202 => "Accepted",
        204 => "Done",
        206 => "The part of the file that Range asks for",
        304 => "The client has the current version, by its ETag",
        400 => "The request is malformed, or a parameter, a name or the body is not valid",
        401 => "A token or a login is needed, or the one given is not valid",
        403 => "Only administrators may do this, or the request has a login and comes from another page",
        404 => "There is nothing of that name",
        408 => "The body did not arrive in time",
        409 => "The current state does not allow it",
        413 => "The body is too large",
        414 => "Path and query together are longer than 8 KiB",
        416 => "The file has no such part",
        429 => "Too many wrong tokens from this address; Retry-After says when to try again",
        503 => {
            "Another program keeps kiso's store from being written, or the daemon is shutting down; nothing was saved"
        }
        507 => "The disk is full; nothing was saved",
        _ => unreachable!("no sentence says what {status} means"),
    }
}
