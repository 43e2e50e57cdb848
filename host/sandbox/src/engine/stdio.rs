//! `wasi:cli/stdin`, `stdout` and `stderr` of WASI 0.3: the streams that a guest of WASI 0.2 has.

use super::stream::{StreamErrorCode, readable, written};
use std::io;
use wasmtime::component::{Access, FutureReader, HasData, Linker, StreamReader};
use wasmtime_wasi::WasiView;
use wasmtime_wasi::cli::{WasiCliCtxView, WasiCliView};
use wasmtime_wasi::p2::bindings::cli as earlier;
use wasmtime_wasi::p3::bindings::cli::types::ErrorCode;
use wasmtime_wasi::p3::bindings::cli::{stderr, stdin, stdout};

struct HasStdio;

impl HasData for HasStdio {
    type Data<'a> = WasiCliCtxView<'a>;
}

/// Replaces wasmtime's own functions, which were added with the rest of WASI 0.3.
pub(crate) fn add_to_linker<T: WasiView + 'static>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    stdin::add_to_linker::<T, HasStdio>(linker, T::cli)?;
    stdout::add_to_linker::<T, HasStdio>(linker, T::cli)?;
    stderr::add_to_linker::<T, HasStdio>(linker, T::cli)?;
    linker.allow_shadowing(false);
    Ok(())
}

type Ended = FutureReader<Result<(), ErrorCode>>;

impl<T> stdin::HostWithStore<T> for HasStdio {
    fn read_via_stream(mut store: Access<'_, T, Self>) -> wasmtime::Result<(StreamReader<u8>, Ended)> {
        let mut cli = store.get();
        let stream = earlier::stdin::Host::get_stdin(&mut cli)?;
        let stream = cli.table.delete(stream)?;
        readable(&mut store, stream, None)
    }
}

impl<T> stdout::HostWithStore<T> for HasStdio {
    fn write_via_stream(mut store: Access<'_, T, Self>, data: StreamReader<u8>) -> wasmtime::Result<Ended> {
        let mut cli = store.get();
        let stream = earlier::stdout::Host::get_stdout(&mut cli)?;
        let stream = cli.table.delete(stream)?;
        written(&mut store, data, stream, None)
    }
}

impl<T> stderr::HostWithStore<T> for HasStdio {
    fn write_via_stream(mut store: Access<'_, T, Self>, data: StreamReader<u8>) -> wasmtime::Result<Ended> {
        let mut cli = store.get();
        let stream = earlier::stderr::Host::get_stderr(&mut cli)?;
        let stream = cli.table.delete(stream)?;
        written(&mut store, data, stream, None)
    }
}

impl StreamErrorCode for ErrorCode {
    fn from_error(error: &wasmtime::Error) -> Self {
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(io::ErrorKind::BrokenPipe) => Self::Pipe,
            _ => Self::Io,
        }
    }

    fn closed() -> Self {
        Self::Pipe
    }
}
