//! Any text is a predictor, a table of jobs, or an error; a predictor answers with finite numbers,
//! and so does one that is fitted to a table.
#![no_main]

use foretrain_fleet::utilisation::{Features, Predictor, PredictorFile, read_table};
use libfuzzer_sys::fuzz_target;

fn answers(predictor: &Predictor, features: &Features) {
    let told = predictor.predict(features);
    let busy = told.utilisation;
    assert!(0.0 <= busy.low && busy.low <= busy.value && busy.value <= busy.high);
    assert!(busy.high <= 100.0);
    if let Some(memory) = told.memory {
        assert!(0.0 <= memory.low && memory.low <= memory.value && memory.value <= memory.high);
        assert!(memory.value.is_finite());
    }
}

fuzz_target!(|text: &str| {
    if let Ok(jobs) = read_table(text, &|name| foretrain_workload::named(name)) {
        assert!(jobs.iter().all(|job| job.features.vector().iter().all(|v| v.is_finite())));
        let few = &jobs[..jobs.len().min(40)];
        if let Ok(predictor) = Predictor::fit(few) {
            few.iter().for_each(|job| answers(&predictor, &job.features));
        }
    }
    // A graph in numbers may come from a file, too.
    let (model, graph) = text.split_once("\n--\n").unwrap_or((text, "{}"));
    if let (Ok(file), Ok(features)) = (PredictorFile::read(model), serde_json::from_str(graph)) {
        answers(&file.predictor, &features);
        answers(&file.predictor, &Features::default());
        assert!(PredictorFile::read(&file.text()).expect("what is written is read") == file);
    }
});
