//! `foretrain fleet`.

mod share;
mod utilisation;
