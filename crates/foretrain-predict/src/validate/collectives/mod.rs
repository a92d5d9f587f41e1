//! Measured times of collectives, from tables that others collected.

#[cfg_attr(not(test), expect(dead_code, reason = "read for scoring the model of collectives"))]
mod tables;
