//! Foretrain in Python.
