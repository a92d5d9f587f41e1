//! Builds small traces for tests.

use foretrain_core::{NameId, Nanos};

use crate::category::Category;
use crate::table::{CommArgs, Trace, Track, TrackId};

/// Collective arguments of which nothing is stated.
pub(crate) fn no_args() -> CommArgs {
    CommArgs { in_elements: -1, out_elements: -1, sequence: -1, peer: -1, ..CommArgs::default() }
}

/// A trace under construction; times in microseconds.
#[derive(Default)]
pub(crate) struct Builder {
    pub(crate) trace: Trace,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn id(&mut self, text: &str) -> NameId {
        self.trace.names.intern(text)
    }

    pub(crate) fn row(
        &mut self,
        category: Category,
        name: &str,
        track: u32,
        at: (i64, i64),
    ) -> u32 {
        let trace = &mut self.trace;
        while trace.tracks.len() <= track as usize {
            let tid = trace.tracks.len().to_string();
            trace.tracks.push(Track { pid: "1".into(), tid, name: String::new() });
        }
        let row = trace.len() as u32;
        let device = category.is_device_work();
        trace.name.push(trace.names.intern(name));
        trace.category.push(category);
        trace.start.push(Nanos::from_micros(at.0));
        trace.duration.push(Nanos::from_micros(at.1));
        trace.track.push(TrackId::new(track));
        trace.correlation.push(0);
        trace.external_id.push(0);
        trace.stream.push(if device { track as i32 } else { -1 });
        trace.device.push(if device { 0 } else { -1 });
        trace.shapes.push(NameId::EMPTY);
        trace.types.push(NameId::EMPTY);
        row
    }

    pub(crate) fn kernel(&mut self, name: &str, stream: u32, at: (i64, i64)) -> u32 {
        self.row(Category::Kernel, name, stream, at)
    }

    pub(crate) fn correlate(&mut self, rows: &[u32], correlation: u64) {
        for &row in rows {
            self.trace.correlation[row as usize] = correlation;
        }
    }

    pub(crate) fn shape(&mut self, row: u32, shapes: &str, types: &str) {
        self.trace.shapes[row as usize] = self.trace.names.intern(shapes);
        self.trace.types[row as usize] = self.trace.names.intern(types);
    }

    pub(crate) fn args(&mut self, row: u32, args: CommArgs) {
        self.trace.comm_args.push(CommArgs { row, ..args });
        self.trace.comm_args.sort_by_key(|args| args.row);
    }
}
