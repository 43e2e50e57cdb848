//! The integration tests: kiso from outside, by its binary and its library's public face.

mod harness;

mod bad_input;
mod cache;
mod cancel;
mod commands;
mod config;
mod crash;
mod daemon;
mod exec;
mod faults;
mod foreign;
mod guests;
mod house;
mod http;
mod install;
mod lab;
mod load;
mod manifest;
mod markers;
mod model_server;
mod models;
mod modes;
mod roles;
mod rules;
mod runs;
mod scenarios;
mod served;
mod shell;
mod shell_docs;
mod socket;
mod streaming;
mod wats;
mod webhooks;
