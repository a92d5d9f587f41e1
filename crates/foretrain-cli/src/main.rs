//! The `foretrain` command.
fn main() {}
