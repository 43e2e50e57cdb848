//! Write a kiso skill in Rust.
//!
//! A skill is a struct, an `impl Skill`, and one macro line. Its `kiso.toml` lies beside `Cargo.toml`; the macro puts
//! it into the component, so the file that `cargo build --target wasm32-wasip2` leaves behind can be installed as it is.
//!
//! ```
//! use kiso_sdk::{Call, Failure, Reply, Skill};
//!
//! /// Counts words in a file of the workspace.
//! struct Words;
//!
//! #[derive(serde::Deserialize)]
//! struct Args {
//!     file: String,
//!     #[serde(default)]
//!     longest: bool,
//! }
//!
//! impl Skill for Words {
//!     type Args = Args;
//!
//!     fn run(args: Args, _call: &Call) -> Result<Reply, Failure> {
//!         let text = kiso_sdk::read(&args.file)?;
//!         kiso_sdk::log::info(format!("{} bytes", text.len()));
//!         let words = text.split_whitespace();
//!         if args.longest {
//!             let longest = words.max_by_key(|w| w.chars().count());
//!             return Ok(Reply::text(longest.unwrap_or("(no words)")));
//!         }
//!         let count = words.count();
//!         Ok(Reply::text(format!("{count} words")).data(&serde_json::json!({ "words": count })))
//!     }
//! }
//!
//! # #[cfg(target_family = "wasm")]
//! kiso_sdk::skill!(Words);
//! # fn main() {}
//! ```
//!
//! Files are reached with `std::fs` under `/work`, the only directory there is; [`read`] and [`write()`] do the same with
//! errors that a user understands. A panic ends the call and its message reaches the user; return a [`Failure`] where
//! something can be said that helps.

mod charset;
mod file;
#[cfg(feature = "http")]
pub mod http;
pub mod kv;
pub mod log;
mod progress;
mod publish;
mod reply;
mod secret;
#[cfg(feature = "http")]
mod url;

pub use charset::decode;
pub use file::{read, read_bytes, resolve, write};
pub use progress::progress;
pub use publish::publish;
pub use reply::{Failure, Reply};
pub use secret::secret;

#[doc(hidden)]
#[allow(missing_docs)]
#[rustfmt::skip]
pub mod bindings;

/// Context of one call, besides its arguments.
#[derive(Debug, Clone)]
pub struct Call {
    /// Name of the tool that is called: the skill's own name, as one skill written with this SDK is one tool.
    pub tool: String,
    /// The session's name. It carries no rights.
    pub session: String,
    /// BCP 47 language tag of the user, such as "en".
    pub locale: String,
}

/// A skill. The host makes a fresh instance for every call, so a skill has no state of its own: what must outlive a
/// call goes to `/work` or to [`kv`].
pub trait Skill {
    /// The arguments as declared in `kiso.toml`. The host validated them and filled in defaults before this instance
    /// existed; a mismatch between the two declarations becomes a [`Failure`] with code `bad-args`.
    type Args: serde::de::DeserializeOwned;

    /// Does the work of one call, within its deadline and its memory.
    fn run(args: Self::Args, call: &Call) -> Result<Reply, Failure>;

    /// Called once at install, with an empty workspace, no secrets and no network; an error refuses the install.
    fn self_test() -> Result<(), String> {
        Ok(())
    }
}

/// Makes `$skill` the skill of this component and puts the crate's `kiso.toml` into it.
#[macro_export]
macro_rules! skill {
    ($skill:ty) => {
        struct KisoGuest;

        impl $crate::bindings::exports::kiso::skill::skill::Guest for KisoGuest {
            fn run(
                call: $crate::bindings::exports::kiso::skill::skill::Call,
            ) -> Result<$crate::bindings::exports::kiso::skill::skill::Reply, $crate::bindings::exports::kiso::skill::skill::Failure> {
                $crate::dispatch::<$skill>(call)
            }
        }

        impl $crate::bindings::exports::kiso::skill::self_test::Guest for KisoGuest {
            fn run() -> Result<(), String> {
                <$skill as $crate::Skill>::self_test()
            }
        }

        $crate::bindings::export_rust!(KisoGuest with_types_in $crate::bindings);

        const _: () = {
            const MANIFEST: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/kiso.toml"));
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "kiso.toml"))]
            #[used]
            static KISO_TOML: [u8; MANIFEST.len()] = {
                let mut bytes = [0; MANIFEST.len()];
                bytes.copy_from_slice(MANIFEST);
                bytes
            };
            // The host reads the version before it instantiates anything, to say which side is too old.
            #[cfg_attr(target_family = "wasm", unsafe(link_section = "kiso-sdk"))]
            #[used]
            static KISO_SDK: [u8; $crate::VERSION.len()] = {
                let mut bytes = [0; $crate::VERSION.len()];
                bytes.copy_from_slice($crate::VERSION.as_bytes());
                bytes
            };
        };
    };
}

#[doc(hidden)]
pub const VERSION: &str = concat!("rust ", env!("CARGO_PKG_VERSION"));

#[doc(hidden)]
pub fn dispatch<S: Skill>(
    call: bindings::exports::kiso::skill::skill::Call,
) -> Result<bindings::exports::kiso::skill::skill::Reply, bindings::exports::kiso::skill::skill::Failure> {
    let args = serde_json::from_str(&call.args)
        .map_err(|e| Failure::new("bad-args", format!("the arguments do not fit what the skill reads: {e}")))?;
    let call = Call { tool: call.tool, session: call.session, locale: call.locale };
    Ok(S::run(args, &call)?.into())
}
