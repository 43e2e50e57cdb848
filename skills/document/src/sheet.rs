//! Workbooks.

pub mod calculate;
pub mod csv;
pub mod excel;
pub mod grid;
mod guard;
pub mod number;
