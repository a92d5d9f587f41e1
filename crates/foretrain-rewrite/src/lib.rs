//! Passes over step graphs: gradient buckets, scale-out, removal and scaling.
