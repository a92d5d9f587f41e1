//! The JSON of `fleet`.

mod edge;
mod share;

pub use edge::{FleetEdgeReport, FleetEdgeRunReport, FleetEdgeServedReport};
pub use share::{
    FleetShareGroupReport, FleetShareModelReport, FleetSharePairReport, FleetSharePlanReport,
    FleetShareReport, FleetShareSpreadReport, FleetShareStepReport, SharePlan,
};
