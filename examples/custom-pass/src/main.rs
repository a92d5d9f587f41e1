//! Predicts the small example with a strategy that holds a pass of one's own.
//!
//! `cargo run -p custom-pass -- examples/ddp-tiny "freeze(0.5) | fuse(25MiB)"`

use std::io::Write;
use std::sync::Arc;

use foretrain::core::{InputError, Result};
use foretrain::hardware::Catalogue;
use foretrain::ingest::{ReadOptions, read_ranks};
use foretrain::predict::{PredictOptions, Recording, predict};
use foretrain::report::TextStyle;
use foretrain::report::text::{self, PredictView};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = || InputError::new("expected a directory of traces and a strategy");
    let traces = arguments.next().ok_or_else(usage)?;
    let strategy = custom_pass::registry()?.parse(&arguments.next().ok_or_else(usage)?)?;
    let (traces, ledger) = read_ranks(&[traces.into()], &ReadOptions::default(), &|_| {})?;
    let recordings: Vec<Recording> =
        traces.into_iter().map(|trace| Recording::analyse(trace, None)).collect();
    let catalogue = Catalogue::builtin();
    let options = PredictOptions {
        strategy: Some(Arc::new(strategy)),
        gpus: vec![2, 16, 64],
        ..PredictOptions::default()
    };
    let cluster = catalogue.cluster("dgx-a100")?;
    let answer = predict(&recordings, &cluster, catalogue, &options)?;
    let page = text::predict(&answer, &ledger, PredictView::default(), TextStyle::default());
    let shown = std::io::stdout().write_all(page.as_bytes());
    shown.map_err(|error| InputError::new(format!("cannot write the answer: {error}")))
}
