pub mod clock; pub mod config; pub mod graph; pub mod home; pub mod llm; pub mod secret; pub mod skill; pub mod store;
