//! Whole clusters rather than single jobs: tables of jobs and what they leave open, what a fleet
//! spends its time on and would gain elsewhere, how busy a job will keep a GPU, how schedulers
//! would have placed the jobs, and which layers of models can share memory.

pub mod audit;
pub mod jobs;
pub mod pai;
pub mod schedule;
pub mod sharing;
pub mod utilisation;
