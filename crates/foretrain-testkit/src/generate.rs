//! From a spec to traces and truth, in memory, in files or as a stream.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use foretrain_core::{InputError, Result};

use crate::kineto::Writer;
use crate::program::Program;
use crate::schedule::Schedule;
use crate::spec::JobSpec;
use crate::truth::{Truth, TruthBuilder};

/// A simulated job: what its profilers would have written, and what really happened.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The trace of every rank, as the bytes of its file.
    pub ranks: Vec<Vec<u8>>,
    /// The truth.
    pub truth: Truth,
}

impl Generated {
    /// The trace of a rank as text.
    ///
    /// # Panics
    /// When there is no such rank.
    pub fn text(&self, rank: usize) -> &str {
        std::str::from_utf8(&self.ranks[rank]).unwrap_or_default()
    }
}

/// Simulates a job.
///
/// # Errors
/// When a knob is out of range ([`JobSpec::check`]) or the job would last longer than a year of
/// simulated time.
pub fn generate(spec: &JobSpec) -> Result<Generated> {
    let program = Program::new(spec)?;
    let mut schedule = Schedule::new(spec, &program);
    let mut truth = TruthBuilder::new(spec, schedule.warm_up());
    let starts: Vec<i64> = (0..spec.ranks).map(|rank| schedule.now(rank)).collect();
    for index in 0..spec.steps {
        truth.add(spec.first_step + index, schedule.step(spec.warmup_steps + index));
    }
    schedule.finish();
    let ranks = (0..spec.ranks)
        .zip(starts)
        .map(|(rank, start)| {
            let mut out = Vec::new();
            let mut writer = Writer::new(spec, &program, rank);
            writer.header(&mut out);
            writer.events(&mut out, &schedule.take_events(rank));
            writer.footer(&mut out, start, schedule.now(rank));
            out
        })
        .collect();
    let collectives = std::mem::take(&mut schedule.collectives);
    Ok(Generated { ranks, truth: truth.finish(&program, collectives) })
}

/// Writes `rank0.json`, `rank1.json`, .. and `truth.json` into a directory, which is created; with
/// `gzip` the traces get `.gz` and are compressed. The same job gives the same bytes.
///
/// # Errors
/// As [`generate`], and when a file cannot be written.
pub fn write_dir(spec: &JobSpec, dir: &Path, gzip: bool) -> Result<Truth> {
    let generated = generate(spec)?;
    std::fs::create_dir_all(dir).map_err(|error| cannot_write(&error, dir))?;
    for (rank, trace) in generated.ranks.iter().enumerate() {
        let suffix = if gzip { ".gz" } else { "" };
        let path = dir.join(format!("rank{rank}.json{suffix}"));
        let bytes = if gzip { compress(trace) } else { Ok(trace.clone()) };
        bytes
            .and_then(|bytes| std::fs::write(&path, bytes))
            .map_err(|error| cannot_write(&error, &path))?;
    }
    let path = dir.join("truth.json");
    let mut text = serde_json::to_string_pretty(&generated.truth)
        .map_err(|error| InputError::new(error.to_string()))?;
    text.push('\n');
    std::fs::write(&path, text).map_err(|error| cannot_write(&error, &path))?;
    Ok(generated.truth)
}

fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn cannot_write(error: &std::io::Error, path: &Path) -> InputError {
    InputError::new(format!("cannot write it: {error}")).in_file(path)
}

/// What a stream came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streamed {
    /// Events, flows and metadata included.
    pub events: u64,
    /// Bytes.
    pub bytes: u64,
    /// Steps.
    pub steps: u32,
}

/// Writes the traces of the first ranks, one writer each, step by step in constant memory. Ends
/// after `spec.steps` steps or with the first step that takes each of them to `least_events`, if
/// given.
///
/// Unlike [`generate`], groups of events repeat per step; the set of events is the same.
///
/// # Errors
/// As [`generate`], when there are more writers than ranks, and when a writer fails.
pub fn stream<W: Write>(
    spec: &JobSpec,
    outputs: &mut [W],
    least_events: Option<u64>,
) -> Result<Streamed> {
    if outputs.is_empty() || outputs.len() > spec.ranks as usize {
        let (got, most) = (outputs.len(), spec.ranks);
        return Err(InputError::new(format!("expected 1 to {most} outputs, found {got}")));
    }
    let program = Program::new(spec)?;
    let mut schedule = Schedule::new(spec, &program);
    schedule.warm_up();
    let starts: Vec<i64> = (0..spec.ranks).map(|rank| schedule.now(rank)).collect();
    let mut writers: Vec<Writer<'_>> =
        (0..).take(outputs.len()).map(|rank| Writer::new(spec, &program, rank)).collect();
    let mut total = Streamed::default();
    let mut buffer = Vec::new();
    for (writer, output) in writers.iter().zip(outputs.iter_mut()) {
        writer.header(&mut buffer);
        flush(&mut buffer, output, &mut total)?;
    }
    while total.steps < spec.steps {
        schedule.step(spec.warmup_steps + total.steps);
        schedule.collectives.clear();
        total.steps += 1;
        for ((rank, writer), output) in (0..).zip(&mut writers).zip(outputs.iter_mut()) {
            writer.events(&mut buffer, &schedule.take_events(rank));
            flush(&mut buffer, output, &mut total)?;
        }
        for rank in outputs.len() as u32..spec.ranks {
            drop(schedule.take_events(rank));
        }
        if least_events.is_some_and(|least| writers.iter().all(|w| w.written() >= least)) {
            break;
        }
    }
    schedule.finish();
    for (((rank, writer), output), start) in
        (0..).zip(&mut writers).zip(outputs.iter_mut()).zip(starts)
    {
        writer.events(&mut buffer, &schedule.take_events(rank));
        writer.footer(&mut buffer, start, schedule.now(rank));
        flush(&mut buffer, output, &mut total)?;
        total.events += writer.written();
    }
    Ok(total)
}

fn flush<W: Write>(buffer: &mut Vec<u8>, output: &mut W, total: &mut Streamed) -> Result<()> {
    output
        .write_all(buffer)
        .map_err(|error| InputError::new(format!("cannot write the trace: {error}")))?;
    total.bytes += buffer.len() as u64;
    buffer.clear();
    Ok(())
}

/// Streams one rank of a transformer with Python frames until at least that many events are
/// written: the shape of a large real trace.
///
/// # Errors
/// When the writer fails.
pub fn big_trace(output: impl Write, events: u64) -> Result<Streamed> {
    let mut spec = JobSpec::tiny_ddp();
    spec.ranks = 2;
    spec.with_stack = true;
    spec.phase_marks = true;
    spec.steps = 1_000_000;
    // Larger traces get deeper networks, as real ones do.
    let layers = (events / 4_000).clamp(2, 96) as u32;
    spec.model =
        crate::Model::Transformer { layers, hidden: 1_024, sequence: 512, vocabulary: 32_000 };
    let mut outputs = [BufWriter::with_capacity(1 << 20, output)];
    let total = stream(&spec, &mut outputs, Some(events))?;
    outputs[0].flush().map_err(|error| InputError::new(format!("cannot write: {error}")))?;
    Ok(total)
}

/// [`stream`] into the files `rank<k>.json` of a directory, which is created.
///
/// # Errors
/// As [`stream`], and when a file cannot be created.
pub fn stream_dir(spec: &JobSpec, dir: &Path, least_events: Option<u64>) -> Result<Streamed> {
    std::fs::create_dir_all(dir).map_err(|error| cannot_write(&error, dir))?;
    let mut outputs = (0..spec.ranks)
        .map(|rank| {
            let path = dir.join(format!("rank{rank}.json"));
            File::create(&path).map(BufWriter::new).map_err(|error| cannot_write(&error, &path))
        })
        .collect::<Result<Vec<_>>>()?;
    let total = stream(spec, &mut outputs, least_events)?;
    outputs
        .iter_mut()
        .try_for_each(Write::flush)
        .map_err(|error| InputError::new(format!("cannot write the traces: {error}")))?;
    Ok(total)
}
