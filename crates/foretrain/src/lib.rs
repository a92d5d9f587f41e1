//! Forecast distributed deep-learning training: the library other Rust programs depend on.
