//! Playing a table of jobs on a cluster under a scheduling policy.
