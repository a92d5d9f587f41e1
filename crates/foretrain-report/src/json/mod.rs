//! Answers as JSON, with a published schema.
//!
//! The structs here mirror the answers and belong to no one else, so that internals may change
//! without breaking a reader. Conventions: times are integer nanoseconds in fields that end in
//! `_ns`, sizes are integer bytes, rates say their unit; what is not known is `null`; a number is
//! never infinite and never "not a number". Documents carry `"schema": "foretrain/ANSWER/1"`; the
//! number grows when a field changes its meaning or goes away, not when one is added.

mod calibrate;
mod capture;
mod collective_log;
mod collectives;
mod common;
mod estimate;
mod fleet;
mod hardware;
mod inspect;
mod inspect_graph;
mod interference;
mod kernels;
mod models;
mod nccl;
mod plan;
mod predict;
mod primitives;
mod scaling;
mod strategies;
mod validate;
mod varuna;
mod whatif;

pub use calibrate::{
    CalibrateCollectivesReport, CalibrateConstantReport, CalibrateFindingReport,
    CalibrateIntervalReport, CalibrateLeftOutReport, CalibrateLibraryReport, CalibratePointReport,
    CalibrateResidualReport, CalibrateRunReport, CalibrateSweepReport, CalibrateTrustReport,
};
pub use capture::{
    CaptureReport, CapturedEnvironmentReport, CapturedLayoutReport, CapturedMemoryReport,
    CapturedStepsReport, MomentsReport,
};
pub use collective_log::{
    CollectiveLogReport, CollectiveRowReport, CollectiveRunReport, TimingReport,
};
pub use collectives::{
    ChoiceReport, CollectivesReport, ComparedRowReport, ComparisonReport, ComparisonScores,
    LeftOutReport, PlateauReport, PredictedRowReport, SettingReport, SweepReport, UncomparedReport,
};
pub use common::{CoverageReport, EvidenceReport, FindingReport, LedgerReport, Range, RangeNs};
pub use estimate::{
    AdviceReport, CalibratedReport, EstimateReport, HorizonReport, LayoutReport,
    MeasuredStepReport, MemoryItemReport, PartReport, PipelineReport, RangeBytes, RemediesReport,
    StageMemoryReport, StageTimeReport, TrainingReport,
};
pub use fleet::{
    FleetAllocatedReport, FleetAuditReport, FleetCaseReport, FleetChangeReport,
    FleetCharacteriseReport, FleetClassTimeReport, FleetColumnReport, FleetCountReport,
    FleetDayReport, FleetDistributionsReport, FleetEdgeReport, FleetEdgeRunReport,
    FleetEdgeServedReport, FleetEffectsReport, FleetFeatureReport, FleetFeaturesJobReport,
    FleetFeaturesReport, FleetFieldReport, FleetFigureReport, FleetGainsReport, FleetGapReport,
    FleetGroupReport, FleetIntervalReport, FleetJobTimesReport, FleetJoinPeriodReport,
    FleetJoinReport, FleetMachineReport, FleetMachinesReport, FleetMeanReport, FleetMethodReport,
    FleetOpenPartReport, FleetOpenReport, FleetPeriodReport, FleetPointReport, FleetPolicyReport,
    FleetProfileReport, FleetProjectReport, FleetProjectionReport, FleetReasonReport,
    FleetResourceReport, FleetResourceShareReport, FleetRowsReport, FleetRunReport,
    FleetSampleReport, FleetSavingsReport, FleetScheduleReport, FleetShareGroupReport,
    FleetShareModelReport, FleetSharePairReport, FleetSharePlanReport, FleetShareReport,
    FleetShareSpreadReport, FleetShareStepReport, FleetSpeedUpReport, FleetSpreadReport,
    FleetSweepReport, FleetTableReport, FleetTimesReport, FleetUnexplainedReport,
    FleetUtilisationPredictReport, FleetUtilisationReport, FleetUtilisationSplitReport,
    FleetWeightedReport, SharePlan,
};
pub use hardware::{ClusterReport, DeviceReport, Figure, HardwareReport, LevelReport, NodeReport};
pub use inspect::{
    ActivityReport, CollectiveUseReport, InspectReport, RankClockReport, RankReport, SpreadReport,
    StepReport, TogetherReport, UnclassifiedReport,
};
pub use inspect_graph::{
    GraphReport, GraphTimesReport, GroupReport, InspectGraphReport, NodeTallyReport, NodesReport,
    OperationReport,
};
pub use interference::{CalibrateInterferenceReport, HeldOutReport};
pub use kernels::{
    CalibrateKernelsReport, KernelCorrectionReport, LeftOutKernelsReport, OddKernelReport,
};
pub use models::{ModelLayerReport, ModelOperationReport, ModelReport, ModelsReport};
pub use nccl::{NcclChoiceReport, NcclCostReport, NcclEnabledReport, NcclGraphReport, NcclReport};
pub use plan::{
    AtBatchReport, CandidateReport, CrossoverReport, ExplainedReport, FrontReport, KeptReport,
    LeftOutPlaceReport, NeedsReport, PlaceReport, PlanRecordedReport, PlanReport,
    RecordedChoiceReport, RecordedClusterReport, RecordedDifferenceReport, RecordedRivalReport,
    RecordedSizeReport, RivalReport, SensitivityReport,
};
pub use predict::{
    CollectiveReport, CriticalPartReport, OwnerReport, PredictReport, RecordedReport, SizeReport,
};
pub use primitives::{CalibratePrimitivesReport, PrimitiveLineReport, PrimitivePointReport};
pub use scaling::{
    AccumulationReport, BreakEvenReport, PredictedScaleReport, RankKindReport, RankSplitReport,
    RanksReport, RateByBatchReport, RemedyReport, ScalePointReport, ScaleSeriesReport,
    ScalingReport, SegmentRateReport, StrategyOutlookReport, VolumeReport,
};
pub use strategies::{ParameterReport, PassReport, StrategiesReport, StrategyReport};
pub use validate::{
    ReferenceReport, RowReport, SkippedReport, ValidateReport, ValidationSetReport,
};
pub use varuna::{
    VarunaAccountReport, VarunaCandidateReport, VarunaCostReport, VarunaDistributionReport,
    VarunaFilledReport, VarunaMorphReport, VarunaMorphingReport, VarunaPlanReport,
    VarunaRefusedReport, VarunaScheduleReport, VarunaShareReport, VarunaSimulateReport,
    VarunaSlowReport, VarunaStageReport, VarunaTaskReport, VarunaUnusableReport,
};
pub use whatif::{
    LeftOutScenarioReport, OutcomeReport, ScenarioReport, WaterfallReport, WhatIfReport,
};

use foretrain_core::{InputError, Result};
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

/// Answers whose JSON has a published schema: verbs, with what they are asked for where
/// their answers differ in form.
pub const ANSWERS: [&str; 32] = [
    "calibrate-collectives",
    "calibrate-primitives",
    "calibrate-interference",
    "calibrate-kernels",
    "collectives",
    "estimate",
    "fleet-audit",
    "fleet-characterise",
    "fleet-edge",
    "fleet-features",
    "fleet-open",
    "fleet-project",
    "fleet-schedule",
    "fleet-share",
    "fleet-sweep",
    "fleet-utilisation",
    "fleet-utilisation-predict",
    "hardware",
    "inspect",
    "inspect-graph",
    "inspect-log",
    "models",
    "plan",
    "plan-recorded",
    "predict",
    "scaling",
    "strategies",
    "validate",
    "varuna-morph",
    "varuna-plan",
    "varuna-simulate",
    "whatif",
];

/// The JSON text of a report, indented, with a line feed at its end.
pub fn to_text<T: Serialize>(report: &T) -> String {
    // Reports are strings, numbers, lists and structs; none of those fails to serialise.
    let mut text = serde_json::to_string_pretty(report)
        .unwrap_or_else(|error| unreachable!("a report is plain data: {error}"));
    text.push('\n');
    text
}

/// The JSON Schema (draft 2020-12) of an answer.
///
/// # Errors
/// If there is no such answer; the error names those there are.
pub fn schema(answer: &str) -> Result<Value> {
    // What is written, not what could be read: a field that is always there is required.
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = match answer {
        "calibrate-collectives" => generator.into_root_schema_for::<CalibrateCollectivesReport>(),
        "calibrate-primitives" => generator.into_root_schema_for::<CalibratePrimitivesReport>(),
        "calibrate-interference" => generator.into_root_schema_for::<CalibrateInterferenceReport>(),
        "calibrate-kernels" => generator.into_root_schema_for::<CalibrateKernelsReport>(),
        "collectives" => generator.into_root_schema_for::<CollectivesReport>(),
        "estimate" => generator.into_root_schema_for::<EstimateReport>(),
        "fleet-audit" => generator.into_root_schema_for::<FleetAuditReport>(),
        "fleet-characterise" => generator.into_root_schema_for::<FleetCharacteriseReport>(),
        "fleet-project" => generator.into_root_schema_for::<FleetProjectReport>(),
        "fleet-sweep" => generator.into_root_schema_for::<FleetSweepReport>(),
        "fleet-edge" => generator.into_root_schema_for::<FleetEdgeReport>(),
        "fleet-features" => generator.into_root_schema_for::<FleetFeaturesReport>(),
        "fleet-open" => generator.into_root_schema_for::<FleetOpenReport>(),
        "fleet-schedule" => generator.into_root_schema_for::<FleetScheduleReport>(),
        "fleet-share" => generator.into_root_schema_for::<FleetShareReport>(),
        "fleet-utilisation" => generator.into_root_schema_for::<FleetUtilisationReport>(),
        "fleet-utilisation-predict" => {
            generator.into_root_schema_for::<FleetUtilisationPredictReport>()
        }
        "hardware" => generator.into_root_schema_for::<HardwareReport>(),
        "models" => generator.into_root_schema_for::<ModelsReport>(),
        "strategies" => generator.into_root_schema_for::<StrategiesReport>(),
        "inspect" => generator.into_root_schema_for::<InspectReport>(),
        "inspect-graph" => generator.into_root_schema_for::<InspectGraphReport>(),
        "inspect-log" => generator.into_root_schema_for::<CollectiveLogReport>(),
        "plan" => generator.into_root_schema_for::<PlanReport>(),
        "plan-recorded" => generator.into_root_schema_for::<PlanRecordedReport>(),
        "predict" => generator.into_root_schema_for::<PredictReport>(),
        "scaling" => generator.into_root_schema_for::<ScalingReport>(),
        "validate" => generator.into_root_schema_for::<ValidateReport>(),
        "varuna-morph" => generator.into_root_schema_for::<VarunaMorphReport>(),
        "varuna-plan" => generator.into_root_schema_for::<VarunaPlanReport>(),
        "varuna-simulate" => generator.into_root_schema_for::<VarunaSimulateReport>(),
        "whatif" => generator.into_root_schema_for::<WhatIfReport>(),
        other => {
            return Err(InputError::new(format!("no JSON schema for {other:?}"))
                .hint(format!("there is one for {}", ANSWERS.join(", "))));
        }
    };
    Ok(schema.to_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(verb: &str) -> std::path::PathBuf {
        std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/schema")
            .join(format!("{verb}.json"))
    }

    /// With `FORETRAIN_UPDATE_SCHEMAS` set the files are written anew.
    #[test]
    fn published_schemas_are_up_to_date() {
        for verb in ANSWERS {
            let now = to_text(&schema(verb).unwrap());
            let path = published(verb);
            if std::env::var_os("FORETRAIN_UPDATE_SCHEMAS").is_some() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, &now).unwrap();
            }
            let then = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(
                now == then,
                "docs/schema/{verb}.json is out of date: run this test with FORETRAIN_UPDATE_SCHEMAS=1"
            );
        }
    }

    #[test]
    fn only_known_verbs_have_a_schema() {
        let error = schema("fly").unwrap_err();
        assert!(error.hints()[0].contains("predict"), "{error:?}");
    }
}
