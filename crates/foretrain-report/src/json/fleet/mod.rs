//! The JSON of `fleet`.

mod audit;

pub use audit::{
    FleetAllocatedReport, FleetAuditReport, FleetColumnReport, FleetDayReport, FleetFieldReport,
    FleetGapReport, FleetJoinPeriodReport, FleetJoinReport, FleetMachineReport,
    FleetMachinesReport, FleetPeriodReport, FleetTableReport, FleetUnexplainedReport,
};
