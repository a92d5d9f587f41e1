//! The JSON of `fleet`.

mod edge;
mod share;
mod utilisation;

pub use edge::{FleetEdgeReport, FleetEdgeRunReport, FleetEdgeServedReport};
pub use share::{
    FleetShareGroupReport, FleetShareModelReport, FleetSharePairReport, FleetSharePlanReport,
    FleetShareReport, FleetShareSpreadReport, FleetShareStepReport, SharePlan,
};
pub use utilisation::{
    FleetFeatureReport, FleetIntervalReport, FleetUtilisationPredictReport, FleetUtilisationReport,
    FleetUtilisationSplitReport,
};
