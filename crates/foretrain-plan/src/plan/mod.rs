//! Which layout to run: every legal one, ranked.

mod explain;
mod front;
mod search;
mod space;

pub use explain::{Comparison, Crossover, Sensitivity, compare, crossovers, sensitivity};
pub use front::pareto;
pub use search::{Candidate, Found, Progress, Question, Refused, search};
pub use space::{Space, layouts};
