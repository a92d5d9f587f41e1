//! Answers as tables for a terminal or a pipe.
//!
//! Tables fit the width they are given. Colour only repeats what words say, so output without it
//! loses nothing.

mod calibrate;
mod capture;
mod collective_log;
mod collectives;
mod estimate;
mod evidence;
mod fleet;
mod fragment;
mod hardware;
mod inspect;
mod inspect_graph;
mod interference;
mod kernels;
mod ledger;
mod models;
mod nccl;
mod owners;
mod plan;
mod predict;
mod primitives;
mod scaling;
mod sheet;
mod strategies;
mod table;
pub mod units;
mod validate;
mod varuna;
mod whatif;

pub use calibrate::calibrate_collectives;
pub(crate) use calibrate::findings::said as calibration_findings;
pub use collective_log::collective_logs;
pub use collectives::{CollectivesView, collectives};
pub use estimate::{EstimateView, estimate};
pub use fleet::{
    fleet_audit, fleet_characterise, fleet_edge, fleet_features, fleet_open, fleet_project,
    fleet_schedule, fleet_share, fleet_sweep, fleet_utilisation, fleet_utilisation_predict,
};
pub use hardware::{
    hardware_cluster, hardware_clusters, hardware_device, hardware_devices, hardware_nodes,
};
pub use inspect::inspect;
pub use inspect_graph::inspect_graph;
pub use interference::calibrate_interference;
pub use kernels::calibrate_kernels;
pub use models::models;
pub use plan::{PlanView, plan, plan_recorded};
pub use predict::{PredictView, predict};
pub use primitives::calibrate_primitives;
pub use scaling::scaling;
pub use strategies::{strategies, strategy_pass, strategy_preset};
pub(crate) use validate::title as validation_title;
pub use validate::validate;
pub use varuna::{varuna_morph, varuna_plan, varuna_simulate};
pub use whatif::whatif;

/// How wide and how colourful the output may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle {
    /// Columns.
    pub width: usize,
    /// Whether to use ANSI colours.
    pub colour: bool,
    /// Whether the page is to be an HTML fragment; width and colour then say nothing.
    pub html: bool,
}

impl Default for TextStyle {
    /// For pipes and files: 100 columns, no colour.
    fn default() -> Self {
        Self { width: 100, colour: false, html: false }
    }
}

impl TextStyle {
    /// For a browser or a notebook.
    pub fn html() -> Self {
        Self { html: true, ..Self::default() }
    }
}
