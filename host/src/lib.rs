//! kiso: a daemon that turns messages into finished work. A model plans and reviews, the host runs the plan, and
//! everything the plan executes runs as a WASI component in a sandbox.
//!
//! This crate is the program: its command line, the daemon, and the channels. What they use is in crates of their own, each with a README
//! that says what it is for and what it must never do; a crate can use those below it, and the compiler holds that.
//!
//! - [`kiso_fleet`] (`host/fleet`) – the same home on several machines, over NATS JetStream.
//! - [`kiso_gateway`] (`host/gateway`) – how programs and people reach the daemon: HTTP, with OpenAI's interface, a unix socket, the page.
//! - [`kiso_agent`] (`host/agent`) – sessions, the steps of runs, prompts, and the tools that a plan can name.
//! - [`kiso_sandbox`] (`host/sandbox`) – skills and command lines as WASI components, and what they may reach.
//! - [`kiso_llm`] (`host/llm`) – one trait for all models, and those that are built in.
//! - [`kiso_store`] (`host/store`) – SQLite with one writer, memory, long texts, secrets.
//! - [`kiso_graph`] (`host/graph`) – the run as a pure state machine, with every edge in one match.
//! - [`kiso_base`] (`host/base`) – the home, `config.toml`, the roles, the clock, connections, and the system.
//! - [`kiso_reflex`](https://docs.rs/kiso-reflex) (`host/reflex`) – the rules of the built-in model.
//! - [`kiso_plan`](https://docs.rs/kiso-plan) (`host/plan`) – plans, reports and verdicts as plain types.
//! - [`table`] (`skills/data/table`) – how a table is read, here as in the skills `data` and `chart`.

pub mod channel;
pub mod cli;
pub mod daemon;
