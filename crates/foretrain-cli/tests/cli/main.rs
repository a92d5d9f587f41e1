//! The built command, from its arguments to what it prints.

mod answers;
mod errors;
mod help;
mod json;
mod readme;
mod support;
