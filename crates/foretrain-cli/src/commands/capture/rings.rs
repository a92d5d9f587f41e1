//! Measuring with processes of this program.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use foretrain::core::{Bytes, InputError, Nanos};
use foretrain::measure::{
    RingOperation, RingOptions, RingPoint, describe_machine, join_ring, measure_ring,
};

use super::{RANK_VERB, Wanted};
use crate::commands::Answer;
use crate::failure::Result;
use crate::output::Output;
use crate::progress::Stages;

/// The same columns as the Python package writes.
const TITLES: &str = "world,bytes,time_us,op,p10_us,p90_us,barriered_us,barriered_p10_us,\
                      barriered_p90_us,n,nodes,cpu_us";

pub(super) fn measure(
    wanted: &Wanted,
    machines: Option<(SocketAddr, u32)>,
    path: &Path,
    output: &Output<'_>,
) -> Result<()> {
    let options = RingOptions {
        ranks: wanted.procs.clone(),
        sizes: if wanted.sizes.is_empty() { usual_sizes() } else { wanted.sizes.clone() },
        operations: if wanted.operations.is_empty() {
            RingOperation::ALL.to_vec()
        } else {
            wanted.operations.clone()
        },
        budget: wanted.budget,
        machines,
    };
    let mut table = Table::default();
    let stages = Stages::new(output.progress());
    let points = options.ranks.len() * options.sizes.len() * options.operations.len();
    let mut done = 0;
    let mut notes = Vec::new();
    let measured = measure_ring(
        &options,
        &output.again(RANK_VERB)?,
        &mut |point| {
            done += 1;
            let stage = format!("{} {}", point.operation.as_str(), point.bytes);
            stages.at(&stage, done, points);
            table.row(point, path)
        },
        &mut |note| notes.push(note.to_owned()),
    );
    stages.finish();
    for note in &notes {
        output.note(&format!("note: {note}"));
    }
    Ok(measured?)
}

/// 1 KiB to 64 MiB.
fn usual_sizes() -> Vec<Bytes> {
    (10..=26).step_by(2).map(|log| Bytes::new(1 << log)).collect()
}

/// A table whose rows are in the file as soon as they are known, so that a rank that dies costs none.
#[derive(Default)]
struct Table {
    file: Option<File>,
}

impl Table {
    fn row(&mut self, point: &RingPoint, path: &Path) -> foretrain::core::Result<()> {
        let failed = |error: std::io::Error| InputError::io(&error, path);
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let mut file = File::create(path).map_err(failed)?;
                let machine = describe_machine();
                writeln!(file, "# foretrain capture comm: plain processes over TCP, {machine}")
                    .and_then(|()| writeln!(file, "{TITLES}"))
                    .map_err(failed)?;
                self.file.insert(file)
            }
        };
        let times: Vec<String> = point.barriered.iter().map(|&time| micros(time)).collect();
        let [usual, low, high] = point.back_to_back.map(micros);
        writeln!(
            file,
            "{},{},{usual},{},{low},{high},{},{},{},{}",
            point.ranks,
            point.bytes.get(),
            point.operation.as_str(),
            times.join(","),
            point.calls,
            point.nodes,
            micros(point.processor),
        )
        .map_err(failed)
    }
}

fn micros(time: Nanos) -> String {
    format!("{:.3}", time.micros_f64())
}

/// The other side of [`measure`].
pub(crate) fn be_a_rank(coordinator: SocketAddr, token: u64, machine: u64) -> Result<Answer> {
    join_ring(coordinator, token, machine)?;
    Ok(Answer::Yes)
}
