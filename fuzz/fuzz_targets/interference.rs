//! No text makes the readers of interference models, tables of pairs and step times alone panic; a
//! model answers with slow-downs that are numbers.
#![no_main]

use foretrain_core::Nanos;
use foretrain_cost::interference::ModelFile;
use foretrain_cost::interference::colocation::{JobLoad, Sharing};
use foretrain_predict::interference::alone::Alone;
use foretrain_predict::interference::calibrate::with_loads;
use foretrain_predict::interference::pairs::Pairs;
use libfuzzer_sys::fuzz_target;

// Pairs and step times stand in one text, with a line of dashes between them.
fuzz_target!(|text: &str| {
    if let Ok(file) = ModelFile::read(text)
        && let Some(domain) = &file.colocation
    {
        let job = |busy: f64, millis: i64| JobLoad {
            step: Nanos::from_millis(millis),
            busy,
            launch: Nanos::from_millis(1),
        };
        for sharing in [Sharing::TimeSliced, Sharing::Mps] {
            let slowdown = domain.model.slowdown(&job(0.9, 10), &[job(0.5, 1_000)], sharing);
            assert!((1.0..=100.0).contains(&slowdown));
        }
    }
    let (pairs, alone) = text.split_once("\n--\n").unwrap_or((text, text));
    if let (Ok(pairs), Ok(alone)) = (Pairs::read(pairs, ""), Alone::read(alone)) {
        for (_, measured) in with_loads(&pairs, &alone).0 {
            assert!((0.0..=1.0).contains(&measured.victim.busy) && measured.slowdown.is_finite());
        }
    }
});
