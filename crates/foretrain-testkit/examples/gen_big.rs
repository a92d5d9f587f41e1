//! Writes big traces for benchmarks.
//!
//! ```text
//! gen_big trace FILE EVENTS              one rank, at least that many events
//! gen_big job DIR RANKS LAYERS STEPS SLOW_RANK FACTOR [DIALECT]
//! ```
//!
//! `gen_big job DIR 8 36 16 3 1.3` has the size of the trace set on which HolisticTraceAnalysis was
//! timed: 8 ranks, rank 3 slower by 30 %, 1.4 million events.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::str::FromStr;

use foretrain_testkit::{Dialect, JobSpec, Model, SlowRank, Streamed, Sync, big_trace, stream_dir};

type Failure = Box<dyn std::error::Error>;

const USAGE: &str = "usage: gen_big trace FILE EVENTS\n       gen_big job DIR RANKS LAYERS STEPS SLOW_RANK FACTOR [DIALECT]";

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let total = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["trace", file, events] => big_trace(File::create(file)?, number("EVENTS", events)?)?,
        ["job", dir, ranks, layers, steps, slow, factor] => {
            job(dir, [ranks, layers, steps, slow], factor, "pytorch-2.4")?
        }
        ["job", dir, ranks, layers, steps, slow, factor, dialect] => {
            job(dir, [ranks, layers, steps, slow], factor, dialect)?
        }
        _ => return Err(USAGE.into()),
    };
    let Streamed { events, bytes, steps } = total;
    writeln!(std::io::stdout(), "{events} events, {bytes} bytes, {steps} steps")?;
    Ok(())
}

fn job(dir: &str, counts: [&str; 4], factor: &str, dialect: &str) -> Result<Streamed, Failure> {
    let [ranks, layers, steps, slow] = counts;
    let dialect = Dialect::parse(dialect).ok_or_else(|| {
        let known: Vec<&str> = Dialect::ALL.iter().map(|dialect| dialect.as_str()).collect();
        format!("unknown dialect {dialect:?}; known are {}", known.join(", "))
    })?;
    let layers = number("LAYERS", layers)?;
    let factor = number("FACTOR", factor)?;
    let spec = JobSpec {
        ranks: number("RANKS", ranks)?,
        steps: number("STEPS", steps)?,
        model: Model::Transformer { layers, hidden: 1_024, sequence: 512, vocabulary: 32_000 },
        slow_rank: Some(SlowRank { rank: number("SLOW_RANK", slow)?, factor }),
        sync: Sync::LossItem,
        ..JobSpec::tiny_ddp()
    };
    Ok(stream_dir(&spec.with_dialect(dialect), Path::new(dir), None)?)
}

fn number<T: FromStr<Err: std::fmt::Display>>(what: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{what}: {error}: {text:?}"))
}
