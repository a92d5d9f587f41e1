//! Answers: from a trace and a cluster to step time, scaling, breakdown and evidence.
