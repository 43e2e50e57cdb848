//! kiso: a daemon that turns messages into finished work. A model plans and reviews, the host runs the plan, and
//! everything the plan executes runs as a WASI component in a sandbox.
//!
//! The modules, in reading order. Each may use only those below it and `graph`, `config`, `home` and the like; a test reads the
//! `use` lines and fails on a breach.
//!
//! - [`cli`] – the command line, one file per command.
//! - [`daemon`] – builds everything, and ends everything.
//! - [`fleet`] – the same home on several machines, over NATS JetStream.
//! - [`channel`] – ways in and out for people, one file each, and the outbox's dispatcher.
//! - [`gateway`] – how programs and people reach the daemon: HTTP, with OpenAI's interface, and a unix socket.
//! - [`schedule`] – messages that come by themselves.
//! - [`session`] – sessions that live on: intake, queue, commands.
//! - [`drive`] – performs the steps of a run and records its events; the only code that does.
//! - [`node`] – what a stop of the graph says to its role's model, and how the answer is read.
//! - [`context`] – which role sees what, and within which budget.
//! - [`tool`] – what a plan may name, as the graph and the planner see it.
//! - [`mcp`] – servers of the Model Context Protocol whose tools plans may use.
//! - [`exec`] – command lines without a host shell: processes that are components.
//! - [`skill`] – installed components and the sandbox that runs them.
//! - [`package`] – commands that are fetched by digest, such as Python.
//! - [`llm`] – one trait for all models, and those that are built in.
//! - [`memory`] – what is remembered beyond a session's window.
//! - [`scratchpad`] – texts that are too large for a prompt, and names for them.
//! - [`secret`] – values that must never be written down.
//! - [`effect`] – what work does to files, kept so that it can be undone, and what it does outside, which cannot.
//! - [`store`] – SQLite, with one writer.
//! - [`net`] – connections to other machines: which addresses may be reached, TLS, kept connections and streams of events.
//!
//! Beside them, without any of the above:
//!
//! - [`graph`] – the run as a pure machine, with every edge in one match.
//! - [`config`] – `config.toml`.
//! - [`home`] – where things live.
//! - [`role`] – the kinds of model calls, one declaration each.
//! - [`clock`] – the time of day.
//! - [`compute`] – work that takes a processor, away from the threads that answer.
//! - [`json`] – JSON from outside: how deep it may be.
//! - [`rpc`] – JSON-RPC 2.0, the envelope of the protocols that are made of it.
//! - [`system`] – what only some operating systems have.
//!
//! Crates of their own, which this one uses:
//!
//! - [`kiso_plan`] (`host/plan`) – what a plan is, what a task leaves behind, and what a model is told: plain types.
//! - [`kiso_reflex`] (`host/reflex`) – the rules of the built-in model, from those types alone.
//! - [`table`] (`skills/data/table`) – how a table is read, here as in the skills `data` and `chart`.

pub mod channel;
pub mod cli;
pub mod clock;
pub mod compute;
pub mod config;
pub mod context;
pub mod daemon;
pub mod drive;
pub mod effect;
pub mod exec;
pub mod fleet;
pub mod gateway;
pub mod graph;
pub mod home;
pub mod json;
pub mod llm;
pub mod mcp;
pub mod memory;
pub mod net;
pub mod node;
pub mod package;
pub mod role;
pub mod rpc;
pub mod schedule;
pub mod scratchpad;
pub mod secret;
pub mod session;
pub mod skill;
pub mod store;
pub mod system;
pub mod tool;
