//! One module per verb: options, the library call, the renderer.

pub(crate) mod calibrate;
pub(crate) mod calibration;
pub(crate) mod capture;
mod collective_log;
pub(crate) mod collectives;
pub(crate) mod estimate;
pub(crate) mod export;
pub(crate) mod fleet;
pub(crate) mod hardware;
pub(crate) mod inspect;
pub(crate) mod interference;
pub(crate) mod job;
pub(crate) mod kernels;
mod logs;
pub(crate) mod models;
pub(crate) mod plan;
pub(crate) mod predict;
pub(crate) mod primitives;
pub(crate) mod scaling;
mod schema;
mod strategies;
pub(crate) mod validate;
pub(crate) mod varuna;
pub(crate) mod whatif;

use crate::failure::Result;
use crate::output::Output;

/// What to do.
#[derive(Debug)]
pub(crate) enum Command {
    Inspect(inspect::Options),
    Predict(Box<predict::Options>),
    WhatIf(Box<whatif::Options>),
    Estimate(Box<estimate::Options>),
    Plan(plan::Options),
    Fleet(Box<fleet::Options>),
    Collectives(Box<collectives::Options>),
    Scaling(Box<scaling::Options>),
    Varuna(Box<varuna::Options>),
    CalibrateCollectives(Box<calibrate::Options>),
    CalibratePrimitives(primitives::Options),
    CalibrateInterference(Box<interference::Options>),
    CalibrateKernels(kernels::Options),
    CaptureComm(capture::Comm),
    Hardware(hardware::Options),
    Export(export::Options),
    Validate(validate::Options),
    Schema(String),
    Models {
        model: Option<String>,
        sequence: Option<u64>,
    },
    Strategies(Option<String>),
    /// Be the second process of a measurement.
    Peer {
        port: u16,
        token: u64,
    },
    /// Be one of the processes of a measurement.
    Rank {
        coordinator: std::net::SocketAddr,
        token: u64,
        machine: u64,
    },
    /// Text that the command line itself can give.
    Print(Vec<u8>),
}

/// Whether what was asked for holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
}

/// Runs a command.
pub(crate) fn run(command: Command, output: &Output<'_>) -> Result<Answer> {
    match command {
        Command::Inspect(options) => inspect::run(&options, output),
        Command::Predict(options) => predict::run(&options, output),
        Command::WhatIf(options) => whatif::run(&options, output),
        Command::Estimate(options) => estimate::run(&options, output),
        Command::Plan(options) => plan::run(&options, output),
        Command::Fleet(options) => fleet::run(&options, output),
        Command::Collectives(options) => collectives::run(&options, output),
        Command::Scaling(options) => scaling::run(&options, output),
        Command::Varuna(options) => varuna::run(&options, output),
        Command::CalibrateCollectives(options) => calibrate::collectives(&options, output),
        Command::CalibratePrimitives(options) => primitives::run(&options, output),
        Command::CalibrateInterference(options) => interference::calibrate(&options, output),
        Command::CalibrateKernels(options) => kernels::run(&options, output),
        Command::CaptureComm(asked) => capture::run(&asked, output),
        Command::Hardware(options) => hardware::run(&options, output),
        Command::Export(options) => export::run(&options, output),
        Command::Validate(options) => validate::run(&options, output),
        Command::Models { model, sequence } => models::run(model.as_deref(), sequence, output),
        Command::Strategies(name) => strategies::run(name.as_deref(), output),
        Command::Schema(verb) => schema::run(&verb, output),
        Command::Peer { port, token } => {
            foretrain::measure::serve(port, token)?;
            Ok(Answer::Yes)
        }
        Command::Rank { coordinator, token, machine } => {
            capture::be_a_rank(coordinator, token, machine)
        }
        Command::Print(text) => {
            output.answer(&String::from_utf8_lossy(&text))?;
            Ok(Answer::Yes)
        }
    }
}
