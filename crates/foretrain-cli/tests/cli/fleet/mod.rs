//! `foretrain fleet`.

mod share;
