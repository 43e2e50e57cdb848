//! kiso: a daemon that turns messages into finished work. A model plans and reviews, the host runs the plan, and
//! everything the plan executes runs as a WASI component in a sandbox.
//!
//! This crate is the program: its command line, the daemon, and the channels. They use other crates, each with a README that
//! describes its purpose and its rules. A crate can use only those below it.
//!
//! - [`kiso_fleet`] (`host/fleet`) – one home shared by several machines, over NATS JetStream.
//! - [`kiso_gateway`] (`host/gateway`) – the interfaces for programs and people: HTTP with OpenAI's interface, a unix
//!   socket, the page.
//! - [`kiso_agent`] (`host/agent`) – sessions, the steps of runs, prompts, and the tools that a plan can name.
//! - [`kiso_sandbox`] (`host/sandbox`) – skills and command lines as WASI components, and their permissions.
//! - [`kiso_llm`] (`host/llm`) – one trait for all models, and the built-in ones.
//! - [`kiso_store`] (`host/store`) – SQLite with one writer, memory, long texts, secrets.
//! - [`kiso_graph`] (`host/graph`) – the run as a pure state machine, with every edge in one match.
//! - [`kiso_base`] (`host/base`) – the home, `config.toml`, the roles, the clock, connections, and the system.
//! - [`kiso_reflex`](https://docs.rs/kiso-reflex) (`host/reflex`) – the rules of the built-in model.
//! - [`kiso_plan`](https://docs.rs/kiso-plan) (`host/plan`) – plans, reports and verdicts as plain types.
//! - [`table`] (`skills/data/table`) – reads tables, here and in the skills `data` and `chart`.

pub mod channel;
pub mod cli;
pub mod daemon;
