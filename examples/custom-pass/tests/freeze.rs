//! The pass takes part in predictions, and the engine knows nothing of it.

use std::sync::Arc;

use foretrain::core::Result;
use foretrain::hardware::Catalogue;
use foretrain::ingest::{ReadOptions, read_ranks};
use foretrain::predict::{PredictOptions, Recording, predict};

/// Communication of a step of 64 GPUs, in bytes.
fn bytes(strategy: &str) -> Result<u64> {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../ddp-tiny");
    let (traces, _) = read_ranks(&[example.into()], &ReadOptions::default(), &|_| {})?;
    let recordings: Vec<Recording> =
        traces.into_iter().map(|trace| Recording::analyse(trace, None)).collect();
    let catalogue = Catalogue::builtin();
    let strategy = custom_pass::registry()?.parse(strategy)?;
    let options = PredictOptions {
        strategy: Some(Arc::new(strategy)),
        gpus: vec![64],
        ..PredictOptions::default()
    };
    let cluster = catalogue.cluster("dgx-a100")?;
    let answer = predict(&recordings, &cluster, catalogue, &options)?;
    let sizes = answer.sizes[0].collectives.iter();
    Ok(sizes.filter_map(|one| Some(one.count as u64 * one.bytes?.get())).sum())
}

#[test]
fn frozen_layers_are_not_exchanged() -> Result<()> {
    let (all, half) = (bytes("fuse(1MiB)")?, bytes("freeze(0.5) | fuse(1MiB)")?);
    assert!(all > 0 && half > 0 && half * 2 <= all, "{half} of {all}");
    assert_eq!(bytes("freeze(1)")?, 0);
    Ok(())
}

#[test]
fn its_parameters_are_checked() {
    let error = custom_pass::registry().unwrap().parse("freeze(2)").unwrap_err();
    assert!(error.message().contains("from 0 to 1"), "{error}");
}
