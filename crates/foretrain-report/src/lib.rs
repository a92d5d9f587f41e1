//! How answers look: terminal tables, JSON with a schema, Perfetto timelines.
