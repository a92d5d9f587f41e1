//! The engine: a deterministic fluid discrete-event simulation of step graphs.
