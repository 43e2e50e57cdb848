//! The streams and futures in the result of a function: what a component sends through them is a part of its reply.
//!
//! | WIT | in the reply |
//! |---|---|
//! | `stream<u8>`, `stream<char>` | a text |
//! | `stream` of texts, numbers, truth values, lists of bytes or texts, and results of texts | rows: an array |
//! | `future` of the same, or of nothing | the value, or null |
//! | `tuple<stream<T>, future<result<_, string>>>` | the stream; the error of the result is that of the call |
//!
//! The host can only read items of types that it was compiled for. So a stream of records is refused when a component is installed.

use super::ctx::Ctx;
use crate::engine::limits::{Budget, HitCell, Limit};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use wasmtime::component::{
    Accessor, FutureAny, FutureConsumer, Lift, Source, StreamAny, StreamConsumer, StreamResult, Type, Val,
};
use wasmtime::{AsContextMut, StoreContextMut};

/// Items that one step of a stream takes.
const ITEMS: usize = 8 << 10;

/// Bytes that each item of a reply takes beside its own: a list of empty texts is bounded, too.
const ITEM_BYTES: u64 = 4;

/// An item of a stream, or the value of a future.
trait Item: Lift + Send + Sync + Sized + 'static {
    fn into_val(self) -> Val;

    /// The bytes that it takes in a reply, about.
    fn bytes(&self) -> u64;

    /// All items of a stream.
    fn gather(items: Vec<Self>) -> Val {
        Val::List(items.into_iter().map(Self::into_val).collect())
    }
}

macro_rules! plain_items {
    ($($ty:ty => $val:ident),* $(,)?) => {
        $(impl Item for $ty {
            fn into_val(self) -> Val {
                Val::$val(self)
            }

            fn bytes(&self) -> u64 {
                ITEM_BYTES + size_of::<Self>() as u64
            }
        })*
    };
}

plain_items! {
    bool => Bool, i8 => S8, i16 => S16, u16 => U16, i32 => S32, u32 => U32, i64 => S64, u64 => U64, f32 => Float32, f64 => Float64,
}

impl Item for u8 {
    fn into_val(self) -> Val {
        Val::U8(self)
    }

    fn bytes(&self) -> u64 {
        1
    }

    fn gather(items: Vec<Self>) -> Val {
        Val::String(String::from_utf8(items).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }
}

impl Item for char {
    fn into_val(self) -> Val {
        Val::Char(self)
    }

    fn bytes(&self) -> u64 {
        self.len_utf8() as u64
    }

    fn gather(items: Vec<Self>) -> Val {
        Val::String(items.into_iter().collect())
    }
}

impl Item for String {
    fn into_val(self) -> Val {
        Val::String(self)
    }

    fn bytes(&self) -> u64 {
        ITEM_BYTES + self.len() as u64
    }
}

impl Item for Vec<u8> {
    fn into_val(self) -> Val {
        u8::gather(self)
    }

    fn bytes(&self) -> u64 {
        ITEM_BYTES + self.len() as u64
    }
}

impl Item for Vec<String> {
    fn into_val(self) -> Val {
        String::gather(self)
    }

    fn bytes(&self) -> u64 {
        ITEM_BYTES + self.iter().map(Item::bytes).sum::<u64>()
    }
}

impl Item for () {
    fn into_val(self) -> Val {
        Val::Option(None)
    }

    fn bytes(&self) -> u64 {
        ITEM_BYTES
    }
}

/// A case of a result.
trait ItemCase: Lift + Send + Sync + 'static {
    fn into_case(self) -> Option<Box<Val>>;

    fn case_bytes(&self) -> u64;
}

impl ItemCase for () {
    fn into_case(self) -> Option<Box<Val>> {
        None
    }

    fn case_bytes(&self) -> u64 {
        0
    }
}

impl ItemCase for String {
    fn into_case(self) -> Option<Box<Val>> {
        Some(Box::new(Val::String(self)))
    }

    fn case_bytes(&self) -> u64 {
        self.len() as u64
    }
}

impl<T: ItemCase, E: ItemCase> Item for Result<T, E> {
    fn into_val(self) -> Val {
        Val::Result(self.map(T::into_case).map_err(E::into_case))
    }

    fn bytes(&self) -> u64 {
        ITEM_BYTES + self.as_ref().map_or_else(E::case_bytes, T::case_bytes)
    }
}

/// Whether a stream or a future of this can be read. [`read_stream`] and [`read_future`] try the same types.
pub(super) fn is_readable(item: Option<&Type>) -> bool {
    let is_case = |ty: Option<Type>| matches!(ty, None | Some(Type::String));
    match item {
        None
        | Some(
            Type::Bool
            | Type::S8
            | Type::U8
            | Type::S16
            | Type::U16
            | Type::S32
            | Type::U32
            | Type::S64
            | Type::U64
            | Type::Float32
            | Type::Float64
            | Type::Char
            | Type::String,
        ) => true,
        Some(Type::List(list)) => matches!(list.ty(), Type::U8 | Type::String),
        Some(Type::Result(result)) => is_case(result.ok()) && is_case(result.err()),
        Some(_) => false,
    }
}

/// Tries each type of an item, and calls a function for the one that fits.
macro_rules! for_item {
    ($any:expr, $into:ident, |$reader:ident: $item:ident| $then:expr) => {
        for_item!(@ $any, $into, $reader, $item, $then;
            u8, char, String, bool, i8, i16, u16, i32, u32, i64, u64, f32, f64, Vec<u8>, Vec<String>, (),
            Result<(), ()>, Result<(), String>, Result<String, ()>, Result<String, String>)
    };
    (@ $any:expr, $into:ident, $reader:ident, $item:ident, $then:expr; $($ty:ty),*) => {
        $(if let Ok($reader) = $any.clone().$into::<$ty>() {
            type $item = $ty;
            return $then;
        })*
    };
}

/// The remaining size that all streams and futures of a reply may have.
#[derive(Clone)]
struct ReplyRoom {
    left: Arc<AtomicU64>,
    budget: Budget,
    hit: HitCell,
}

impl ReplyRoom {
    fn take(&self, bytes: u64) -> wasmtime::Result<()> {
        let taken = self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| self.hit.set(self.budget.hit(Limit::Output)).into())
    }
}

type Gathered = VecDeque<oneshot::Receiver<Val>>;

/// Replaces the streams and futures in a result by what the component sends through them.
pub(super) async fn gather(
    guest: &Accessor<Ctx>,
    results: &mut [Val],
    budget: &Budget,
    hit: &HitCell,
) -> wasmtime::Result<()> {
    let left = Arc::new(AtomicU64::new(budget.output_bytes()));
    let room = ReplyRoom { left, budget: budget.clone(), hit: hit.clone() };
    let mut receivers = Gathered::new();
    guest.with(|mut store| results.iter_mut().try_for_each(|value| read(&mut store, value, &room, &mut receivers)))?;
    let mut gathered = VecDeque::new();
    for receiver in receivers {
        gathered.push_back(receiver.await.map_err(|_| wasmtime::format_err!("a future of its result has no value"))?);
    }
    for value in results {
        let has_end = matches!(value, Val::Tuple(items) if matches!(items[..], [Val::Stream(_), Val::Future(_)]));
        fill(value, &mut gathered);
        if has_end {
            join_end(value);
        }
    }
    Ok(())
}

/// A stream with its end becomes the stream, or the error of the end.
fn join_end(value: &mut Val) {
    let Val::Tuple(items) = value else { return };
    let joined = match &mut items[..] {
        [all, Val::Result(Ok(None))] => std::mem::replace(all, Val::Bool(false)),
        [_, end @ Val::Result(Err(_))] => std::mem::replace(end, Val::Bool(false)),
        _ => return,
    };
    *value = joined;
}

/// The values directly in a value, in a fixed order.
fn parts(value: &mut Val) -> Vec<&mut Val> {
    match value {
        Val::List(items) | Val::Tuple(items) | Val::FixedLengthList(items) => items.iter_mut().collect(),
        Val::Map(entries) => entries.iter_mut().flat_map(|(key, value)| [key, value]).collect(),
        Val::Record(fields) => fields.iter_mut().map(|(_, value)| value).collect(),
        Val::Variant(_, value) | Val::Option(value) | Val::Result(Ok(value) | Err(value)) => {
            value.as_deref_mut().into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// Starts to read every stream and future in a value.
fn read(
    store: &mut impl AsContextMut<Data = Ctx>,
    value: &mut Val,
    room: &ReplyRoom,
    receivers: &mut Gathered,
) -> wasmtime::Result<()> {
    match value {
        Val::Stream(stream) => receivers.push_back(read_stream(store, stream, room)?),
        Val::Future(future) => receivers.push_back(read_future(store, future, room)?),
        other => {
            for part in parts(other) {
                read(store, part, room, receivers)?;
            }
        }
    }
    Ok(())
}

fn fill(value: &mut Val, gathered: &mut VecDeque<Val>) {
    if matches!(value, Val::Stream(_) | Val::Future(_)) {
        if let Some(found) = gathered.pop_front() {
            *value = found;
        }
        return;
    }
    parts(value).into_iter().for_each(|part| fill(part, gathered));
}

fn read_stream(
    store: &mut impl AsContextMut<Data = Ctx>,
    stream: &StreamAny,
    room: &ReplyRoom,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    let (sender, receiver) = oneshot::channel();
    for_item!(stream, try_into_stream_reader, |reader: Each| {
        let rows = Rows::<Each> { items: Vec::new(), room: room.clone(), all: Some(sender) };
        reader.pipe(&mut *store, rows)?;
        Ok(receiver)
    });
    Err(wasmtime::format_err!("its result has a stream whose items kiso cannot read"))
}

fn read_future(
    store: &mut impl AsContextMut<Data = Ctx>,
    future: &FutureAny,
    room: &ReplyRoom,
) -> wasmtime::Result<oneshot::Receiver<Val>> {
    let (sender, receiver) = oneshot::channel();
    for_item!(future, try_into_future_reader, |reader: Each| {
        let value = Awaited::<Each> { room: room.clone(), value: Some(sender), _of: std::marker::PhantomData };
        reader.pipe(&mut *store, value)?;
        Ok(receiver)
    });
    Err(wasmtime::format_err!("its result has a future whose value kiso cannot read"))
}

/// The items of a stream, which are complete when the engine drops this.
struct Rows<T: Item> {
    items: Vec<T>,
    room: ReplyRoom,
    all: Option<oneshot::Sender<Val>>,
}

impl<T: Item + Unpin> StreamConsumer<Ctx> for Rows<T> {
    type Item = T;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'_, Ctx>,
        mut source: Source<'_, T>,
        _: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        let count = source.remaining(&mut store).min(ITEMS);
        if count > 0 {
            let mut taken = Vec::with_capacity(count);
            source.read(&mut store, &mut taken)?;
            self.room.take(taken.iter().map(Item::bytes).sum())?;
            self.items.append(&mut taken);
        }
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

impl<T: Item> Drop for Rows<T> {
    fn drop(&mut self) {
        if let Some(all) = self.all.take() {
            // A call that has ended does not wait for it.
            let _ = all.send(T::gather(std::mem::take(&mut self.items)));
        }
    }
}

/// The value of a future.
struct Awaited<T> {
    room: ReplyRoom,
    value: Option<oneshot::Sender<Val>>,
    _of: std::marker::PhantomData<fn() -> T>,
}

impl<T: Item> FutureConsumer<Ctx> for Awaited<T> {
    type Item = T;

    fn poll_consume(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut store: StoreContextMut<'_, Ctx>,
        mut source: Source<'_, T>,
        _: bool,
    ) -> Poll<wasmtime::Result<()>> {
        let mut taken = None;
        source.read(&mut store, &mut taken)?;
        if let (Some(taken), Some(value)) = (taken, self.value.take()) {
            self.room.take(T::bytes(&taken))?;
            let _ = value.send(taken.into_val());
        }
        Poll::Ready(Ok(()))
    }
}
