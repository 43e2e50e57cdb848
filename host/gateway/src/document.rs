//! The OpenAPI document, made from the tables of routes and from the signatures of their handlers: what a handler takes and
//! answers is what its types say, so the document cannot differ from it. Only what types do not say stands in the tables.

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

/// A method and path that is served.
pub(crate) struct Route {
    pub method: Method,
    /// As the router reads it: `{*rest}` takes the rest of a path.
    pub path: &'static str,
    pub access: Access,
    /// What it does, in the lines of its comment.
    pub about: &'static [&'static str],
    /// What a status means here, where the usual sentence does not say it.
    pub statuses: &'static [(u16, &'static str)],
    pub router: fn() -> MethodRouter<App>,
    pub describe: fn(&mut Operation<'_>),
}

/// A table of routes: comment, method, path, who may ask and the handler; then statuses with what they mean.
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
                describe: |operation| operation.of(&$handler),
            },
        )*];
    };
}
pub(crate) use routes;

/// The whole document, for this version of kiso.
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
                    "summary": "What the receiver of a webhook is sent; docs/webhooks.md says how to check that kiso sent it",
                    "requestBody": { "required": true, "content": { "application/json": { "schema": letter } } },
                    "responses": { "200": { "description": "The delivery has arrived; every other 2xx says so, too" } },
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

/// The schemas of what is read and of what is written: a field with a default may be left out of the one, and is always in the
/// other.
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

    /// Every schema with a name, by it. What is read and written alike is one.
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

/// A comment is as wide as a line of code; a description is one line.
fn unwrapped(object: &mut Map<String, Value>) {
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

/// Of what is written, a member that may be absent is never null: it is absent instead.
fn exact(object: &mut Map<String, Value>) {
    let required = object.get("required").cloned().unwrap_or_default();
    let members = object.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten();
    members.filter(|(name, _)| !contains(&required, name)).for_each(|(_, member)| not_null(member));
    unwrapped(object);
}

/// Of what is read, an integer is within the range of its type.
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

/// Whether a list of names, if it is one, has this one.
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

/// An operation, as far as its handler's types have said what it is.
pub(crate) struct Operation<'s> {
    schemas: &'s mut Schemas,
    /// Names of the parameters in its path.
    pub names: Vec<String>,
    parameters: Vec<Value>,
    body: Option<Value>,
    /// The content of each answer, by status.
    answers: BTreeMap<u16, Option<Value>>,
}

impl<'s> Operation<'s> {
    fn new(route: &Route, path: &str, schemas: &'s mut Schemas) -> Operation<'s> {
        let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
        let names = names.map(str::to_owned).collect();
        let mut operation = Operation { schemas, names, parameters: Vec::new(), body: None, answers: BTreeMap::new() };
        // What is checked before the handler is asked, and what every write can meet.
        operation.refuses(&[400, 414]);
        if route.access != Access::Open {
            operation.refuses(&[401, 403, 429]);
        }
        if route.method != Method::GET {
            operation.refuses(&[503, 507]);
        }
        operation
    }

    /// Takes in what the types of a handler say.
    pub(crate) fn of<P>(&mut self, handler: &impl Handler<P>) {
        handler.describe(self);
    }

    /// Errors, which have one form.
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

    /// The schema of something that is read.
    pub(crate) fn input<T: JsonSchema>(&mut self) -> Value {
        self.schemas.read.subschema_for::<T>().to_value()
    }

    /// The same with its members in place, also where it has a name.
    pub(crate) fn members<T: JsonSchema>(&mut self) -> Value {
        T::json_schema(&mut self.schemas.read).to_value()
    }

    /// The schema of something that is written.
    pub(crate) fn output<T: JsonSchema>(&mut self) -> Value {
        self.schemas.output::<T>()
    }

    /// Answers without a body that has a schema.
    pub(crate) fn sends(&mut self, statuses: &[u16]) {
        self.answers.extend(statuses.iter().map(|status| (*status, None)));
    }

    /// Takes in a parameter with the description in its schema.
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
            // A range that a file does not have is refused without a word.
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

/// What a status means where the table of routes says nothing.
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
