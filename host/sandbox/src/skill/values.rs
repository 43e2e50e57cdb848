//! Component values as JSON, and component types as JSON Schema: how a component of plain exported functions becomes
//! tools.
//!
//! | WIT | JSON |
//! |---|---|
//! | bool, integers, floats, string | the same; integers within the range of their type |
//! | char | a string of one character |
//! | list, tuple | array |
//! | record | object; members of option type may be absent |
//! | option | the value or null |
//! | enum | one of its names |
//! | flags | array of names |
//! | variant | {"case": value}, or "case" where it has no value |
//! | result | {"ok": value} or {"err": value} |
//! | stream, future | in results only: [`streamed`](super::streamed) |

use super::streamed::is_readable;
use serde_json::{Map, Number, Value, json};
use wasmtime::component::{Type, Val};

/// Parts of the schemas of one component, at most.
const MAX_PARTS: usize = 4_000;

/// Bytes of all names in them, at most.
const MAX_NAME_BYTES: usize = super::surface::MAX_BYTES;

/// The remaining size that the schemas of one component may have. A type that names itself twice on each of twenty levels takes a
/// few bytes in the component and a million parts when it is written out, and one long name in a type that is used a thousand
/// times is written a thousand times.
#[derive(Debug)]
pub(super) struct SchemaRoom {
    parts: usize,
    name_bytes: usize,
    /// Whether the schema is that of a result, which may contain streams and futures.
    is_result: bool,
}

impl Default for SchemaRoom {
    fn default() -> Self {
        Self { parts: MAX_PARTS, name_bytes: MAX_NAME_BYTES, is_result: false }
    }
}

/// The reason why a type has no schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoSchema {
    #[error("a {0}, which has no JSON form")]
    NoForm(String),
    #[error("types of more than 4,000 parts, nested ones counted each time, which is the limit for a component")]
    TooManyParts,
    #[error(
        "types whose names take more than {MAX_NAME_BYTES} bytes, counted each time they stand there, which is the limit for a component"
    )]
    TooManyBytes,
}

impl SchemaRoom {
    fn part(&mut self) -> Result<(), NoSchema> {
        self.parts = self.parts.checked_sub(1).ok_or(NoSchema::TooManyParts)?;
        Ok(())
    }

    fn name(&mut self, name: &str) -> Result<(), NoSchema> {
        self.name_bytes = self.name_bytes.checked_sub(name.len()).ok_or(NoSchema::TooManyBytes)?;
        Ok(())
    }

    /// Each name counts its bytes and one part, so that a list of a million empty names is bounded, too.
    fn names<'a>(&mut self, names: impl Iterator<Item = &'a str>) -> Result<Vec<&'a str>, NoSchema> {
        names
            .map(|name| {
                self.part()?;
                self.name(name)?;
                Ok(name)
            })
            .collect()
    }
}

/// The schema of a type, within the remaining room for its component.
pub(super) fn schema(ty: &Type, room: &mut SchemaRoom) -> Result<Value, NoSchema> {
    room.part()?;
    let integer =
        |min: i128, max: i128| Ok(json!({ "type": "integer", "minimum": number(min), "maximum": number(max) }));
    match ty {
        Type::Bool => Ok(json!({ "type": "boolean" })),
        Type::S8 => integer(i8::MIN.into(), i8::MAX.into()),
        Type::U8 => integer(0, u8::MAX.into()),
        Type::S16 => integer(i16::MIN.into(), i16::MAX.into()),
        Type::U16 => integer(0, u16::MAX.into()),
        Type::S32 => integer(i32::MIN.into(), i32::MAX.into()),
        Type::U32 => integer(0, u32::MAX.into()),
        Type::S64 => integer(i64::MIN.into(), i64::MAX.into()),
        Type::U64 => integer(0, u64::MAX.into()),
        Type::Float32 | Type::Float64 => Ok(json!({ "type": "number" })),
        Type::Char => Ok(json!({ "type": "string", "minLength": 1, "maxLength": 1 })),
        Type::String => Ok(json!({ "type": "string" })),
        Type::List(list) => Ok(json!({ "type": "array", "items": schema(&list.ty(), room)? })),
        Type::Tuple(tuple) => {
            let items = tuple.types().map(|t| schema(&t, room)).collect::<Result<Vec<_>, _>>()?;
            let n = items.len();
            Ok(json!({ "type": "array", "prefixItems": items, "minItems": n, "maxItems": n }))
        }
        Type::Record(record) => object(record.fields().map(|f| (f.name, f.ty)), room),
        Type::Option(option) => Ok(json!({ "anyOf": [schema(&option.ty(), room)?, { "type": "null" }] })),
        Type::Enum(names) => Ok(json!({ "type": "string", "enum": room.names(names.names())? })),
        Type::Flags(names) => {
            let names = room.names(names.names())?;
            Ok(json!({ "type": "array", "items": { "type": "string", "enum": names }, "uniqueItems": true }))
        }
        Type::Variant(variant) => {
            let cases = variant.cases().map(|c| case(c.name, c.ty.as_ref(), room)).collect::<Result<Vec<_>, _>>()?;
            Ok(json!({ "oneOf": cases }))
        }
        Type::Result(result) => Ok(
            json!({ "oneOf": [tagged("ok", result.ok().as_ref(), room)?, tagged("err", result.err().as_ref(), room)?] }),
        ),
        Type::Stream(stream) if room.is_result && is_readable(stream.ty().as_ref()) => Ok(json!({})),
        Type::Future(future) if room.is_result && is_readable(future.ty().as_ref()) => Ok(json!({})),
        other => Err(NoSchema::NoForm(format!("{other:?}").split('(').next().unwrap_or_default().to_lowercase())),
    }
}

/// Checks that a result of this type has a JSON form. Models only see the schemas of arguments.
pub(super) fn check_result(ty: &Type, room: &mut SchemaRoom) -> Result<(), NoSchema> {
    room.is_result = true;
    let found = schema(ty, room);
    room.is_result = false;
    found.map(drop)
}

/// The schema of an object whose members have these types.
pub(super) fn object<'a>(
    fields: impl Iterator<Item = (&'a str, Type)>,
    room: &mut SchemaRoom,
) -> Result<Value, NoSchema> {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for (name, ty) in fields {
        room.name(name)?;
        if !matches!(ty, Type::Option(_)) {
            room.name(name)?;
            required.push(json!(name));
        }
        properties.insert(name.to_owned(), schema(&ty, room)?);
    }
    Ok(json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false }))
}

fn case(name: &str, ty: Option<&Type>, room: &mut SchemaRoom) -> Result<Value, NoSchema> {
    match ty {
        Some(_) => tagged(name, ty, room),
        None => {
            room.part()?;
            room.name(name)?;
            Ok(json!({ "const": name }))
        }
    }
}

fn tagged(name: &str, ty: Option<&Type>, room: &mut SchemaRoom) -> Result<Value, NoSchema> {
    // The name occurs as a property and in the list of required ones.
    room.name(name)?;
    room.name(name)?;
    let value = match ty {
        Some(ty) => schema(ty, room)?,
        None => json!({ "type": "null" }),
    };
    Ok(json!({ "type": "object", "properties": { name: value }, "required": [name], "additionalProperties": false }))
}

fn number(n: i128) -> Value {
    i64::try_from(n).map_or_else(|_| json!(u64::try_from(n).unwrap_or(u64::MAX)), |n| json!(n))
}

/// Converts JSON to a value of this type. The JSON was validated against [`schema`], so errors are rare; they say what was
/// expected.
pub(super) fn from_json(ty: &Type, json: &Value) -> Result<Val, String> {
    let expected = |what: &str| format!("expected {what}, found {json}");
    macro_rules! int {
        ($case:ident, $ty:ty) => {{
            // A float without a fraction, such as 3.0, is an integer to JSON Schema.
            let whole = json.as_f64().filter(|f| f.fract() == 0.0 && f.abs() < 9e15).map(|f| f as i128);
            let n = json.as_i64().map(i128::from).or_else(|| json.as_u64().map(i128::from)).or(whole);
            n.and_then(|n| <$ty>::try_from(n).ok()).map(Val::$case).ok_or_else(|| expected(stringify!($ty)))
        }};
    }
    match ty {
        Type::Bool => json.as_bool().map(Val::Bool).ok_or_else(|| expected("true or false")),
        Type::S8 => int!(S8, i8),
        Type::U8 => int!(U8, u8),
        Type::S16 => int!(S16, i16),
        Type::U16 => int!(U16, u16),
        Type::S32 => int!(S32, i32),
        Type::U32 => int!(U32, u32),
        Type::S64 => int!(S64, i64),
        Type::U64 => int!(U64, u64),
        Type::Float32 => json.as_f64().map(|f| Val::Float32(f as f32)).ok_or_else(|| expected("a number")),
        Type::Float64 => json.as_f64().map(Val::Float64).ok_or_else(|| expected("a number")),
        Type::Char => {
            let mut chars = json.as_str().unwrap_or_default().chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(Val::Char(c)),
                _ => Err(expected("one character")),
            }
        }
        Type::String => json.as_str().map(|s| Val::String(s.to_owned())).ok_or_else(|| expected("a string")),
        Type::List(list) => {
            let items = json.as_array().ok_or_else(|| expected("an array"))?;
            Ok(Val::List(items.iter().map(|i| from_json(&list.ty(), i)).collect::<Result<_, _>>()?))
        }
        Type::Tuple(tuple) => {
            let items =
                json.as_array().filter(|a| a.len() == tuple.types().len()).ok_or_else(|| expected("an array"))?;
            Ok(Val::Tuple(tuple.types().zip(items).map(|(t, i)| from_json(&t, i)).collect::<Result<_, _>>()?))
        }
        Type::Record(record) => {
            let object = json.as_object().ok_or_else(|| expected("an object"))?;
            let field = |f: wasmtime::component::types::Field<'_>| {
                let value = object.get(f.name).unwrap_or(&Value::Null);
                let value = from_json(&f.ty, value).map_err(|e| format!("{}: {e}", f.name))?;
                Ok((f.name.to_owned(), value))
            };
            Ok(Val::Record(record.fields().map(field).collect::<Result<_, String>>()?))
        }
        Type::Option(_) if json.is_null() => Ok(Val::Option(None)),
        Type::Option(option) => Ok(Val::Option(Some(Box::new(from_json(&option.ty(), json)?)))),
        Type::Enum(names) => {
            let name =
                json.as_str().filter(|s| names.names().any(|n| n == *s)).ok_or_else(|| expected("one of its names"))?;
            Ok(Val::Enum(name.to_owned()))
        }
        Type::Flags(_) => {
            let names = json.as_array().ok_or_else(|| expected("an array of names"))?;
            Ok(Val::Flags(names.iter().filter_map(Value::as_str).map(str::to_owned).collect()))
        }
        Type::Variant(variant) => {
            let (name, value) = tag(json).ok_or_else(|| expected("one of its cases"))?;
            let case = variant.cases().find(|c| c.name == name).ok_or_else(|| expected("one of its cases"))?;
            let value = case.ty.as_ref().map(|ty| from_json(ty, value.unwrap_or(&Value::Null))).transpose()?;
            Ok(Val::Variant(name.to_owned(), value.map(Box::new)))
        }
        Type::Result(result) => {
            let (name, value) = tag(json).ok_or_else(|| expected("{\"ok\": …} or {\"err\": …}"))?;
            let value =
                |ty: Option<Type>| ty.map(|ty| from_json(&ty, value.unwrap_or(&Value::Null)).map(Box::new)).transpose();
            Ok(Val::Result(match name {
                "ok" => Ok(value(result.ok())?),
                _ => Err(value(result.err())?),
            }))
        }
        _ => Err("this type has no JSON form".to_owned()),
    }
}

fn tag(json: &Value) -> Option<(&str, Option<&Value>)> {
    match json {
        Value::String(name) => Some((name, None)),
        Value::Object(map) if map.len() == 1 => map.iter().next().map(|(k, v)| (k.as_str(), Some(v))),
        _ => None,
    }
}

/// A value as JSON. Numbers that JSON cannot hold (NaN, infinities) become strings.
pub(super) fn to_json(value: &Val) -> Value {
    let float = |f: f64| Number::from_f64(f).map_or_else(|| json!(f.to_string()), Value::Number);
    let tagged = |name: &str, value: &Option<Box<Val>>| json!({ name: value.as_deref().map_or(Value::Null, to_json) });
    match value {
        Val::Bool(b) => json!(b),
        Val::S8(n) => json!(n),
        Val::U8(n) => json!(n),
        Val::S16(n) => json!(n),
        Val::U16(n) => json!(n),
        Val::S32(n) => json!(n),
        Val::U32(n) => json!(n),
        Val::S64(n) => json!(n),
        Val::U64(n) => json!(n),
        // Through the shortest text, so that 0.1 does not come out as 0.10000000149011612.
        Val::Float32(f) => f.to_string().parse().map_or_else(|_| json!(f.to_string()), float),
        Val::Float64(f) => float(*f),
        Val::Char(c) => json!(c.to_string()),
        Val::String(s) => json!(s),
        Val::List(items) | Val::Tuple(items) => items.iter().map(to_json).collect(),
        Val::Record(fields) => Value::Object(fields.iter().map(|(name, v)| (name.clone(), to_json(v))).collect()),
        Val::Option(value) => value.as_deref().map_or(Value::Null, to_json),
        Val::Enum(name) => json!(name),
        Val::Flags(names) => json!(names),
        Val::Variant(name, None) => json!(name),
        Val::Variant(name, value) => tagged(name, value),
        Val::Result(Ok(value)) => tagged("ok", value),
        Val::Result(Err(value)) => tagged("err", value),
        other => json!(format!("{other:?}")),
    }
}
