//! Which layout to run: every legal one, ranked.

mod answer;
mod explain;
mod front;
mod place;
mod rank;
mod reasons;
mod rival;
mod search;
mod space;

pub use answer::{Choice, Goal, LeftOut, OnFront, Plan, plan};
pub use explain::{Comparison, Crossover, Sensitivity, compare, crossovers, sensitivity};
pub use front::pareto;
pub use place::{Place, Rates};
pub use rank::{EQUAL, complexity};
pub use reasons::{Explained, Needs, Reasons};
pub use rival::{AtBatch, Rival};
pub use search::{Candidate, Found, Progress, Question, Refused, search};
pub use space::{Space, layouts};
