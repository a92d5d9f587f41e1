//! The JSON of `fleet`.

mod audit;
mod characterise;
mod moved;
mod steps;

pub use audit::{
    FleetAllocatedReport, FleetAuditReport, FleetColumnReport, FleetDayReport, FleetFieldReport,
    FleetGapReport, FleetJoinPeriodReport, FleetJoinReport, FleetMachineReport,
    FleetMachinesReport, FleetPeriodReport, FleetTableReport, FleetUnexplainedReport,
};
pub use characterise::{
    FleetCaseReport, FleetCharacteriseReport, FleetClassTimeReport, FleetCountReport,
    FleetDistributionsReport, FleetGroupReport, FleetPointReport, FleetProfileReport,
    FleetResourceShareReport, FleetSpreadReport, FleetWeightedReport,
};
pub use moved::{
    FleetChangeReport, FleetEffectsReport, FleetGainsReport, FleetProjectReport,
    FleetProjectionReport, FleetReasonReport, FleetSpeedUpReport, FleetSweepReport,
    FleetTimesReport,
};
pub use steps::{FleetMethodReport, FleetResourceReport, FleetRowsReport};
mod edge;
mod features;
mod open;
mod schedule;
mod share;
mod utilisation;

pub use edge::{FleetEdgeReport, FleetEdgeRunReport, FleetEdgeServedReport};
pub use features::{FleetFeaturesJobReport, FleetFeaturesReport, FleetFigureReport};
pub use open::{FleetOpenPartReport, FleetOpenReport};
pub use schedule::{
    FleetJobTimesReport, FleetMeanReport, FleetPolicyReport, FleetRunReport, FleetSampleReport,
    FleetSavingsReport, FleetScheduleReport,
};
pub use share::{
    FleetShareGroupReport, FleetShareModelReport, FleetSharePairReport, FleetSharePlanReport,
    FleetShareReport, FleetShareSpreadReport, FleetShareStepReport, SharePlan,
};
pub use utilisation::{
    FleetFeatureReport, FleetIntervalReport, FleetUtilisationPredictReport, FleetUtilisationReport,
    FleetUtilisationSplitReport,
};
