use foretrain_core::Bytes;
use foretrain_workload::{known, named};

use super::*;

/// Jobs whose utilisation follows from their work and launches, in families that differ in depth.
fn jobs(families: u32) -> Vec<MeasuredJob> {
    let each = (0..families).flat_map(|family| (1..=40).map(move |size| (family, size)));
    each.map(|(family, size)| {
        let (layers, flops) = (f64::from(family + 2), 1e8 * 1.2_f64.powi(size));
        let (busy, idle) = (flops / 1e13, layers * 20e-6);
        MeasuredJob {
            family: format!("family {family}"),
            features: Features {
                batch: f64::from(size),
                flops,
                parameters: 1e5 * f64::from(size),
                linear: layers,
                ..Features::default()
            },
            utilisation: 100.0 * busy / (busy + idle),
            memory: Some(Bytes::from_mib(1000 + 10 * size as u64)),
        }
    })
    .collect()
}

#[test]
fn graphs_are_counted() {
    let model = named("resnet-50").unwrap();
    let features = Features::of(&model, 32).unwrap();
    assert_eq!(features.flops, 32.0 * model.forward(None).get());
    assert_eq!((features.convolution, features.linear, features.normalisation), (53.0, 1.0, 53.0));
    assert_eq!((features.inputs, features.outputs), (3.0 * 224.0 * 224.0, 1000.0));
    assert_eq!(features.widest, 64.0 * 112.0 * 112.0);
    assert_eq!(features.narrowest, 1000.0);
    let twice = Features::of(&model, 64).unwrap();
    assert_eq!(twice.numbers, 2.0 * features.numbers);
    assert!(Features::of(&model, 0).is_err());
    // Every model of the library has features that trees can use.
    for model in ["llama-3-8b", "gnmt", "dlrm", "bert-large", "t5-base"] {
        let vector = Features::of(&known(model).unwrap().model().unwrap(), 4).unwrap().vector();
        assert!(
            vector.iter().all(|value| value.is_finite() && *value >= 0.0),
            "{model} {vector:?}"
        );
    }
}

#[test]
fn what_was_not_seen_is_still_told_better_than_by_the_mean() {
    let jobs = jobs(5);
    let families: Vec<&str> = jobs.iter().map(|job| job.family.as_str()).collect();
    let told = held_out(&jobs, &families);
    let scores = scores(&jobs, &told).unwrap();
    assert_eq!(scores.jobs, jobs.len());
    assert!(scores.rmsle < 0.5 * scores.mean_rmsle && scores.mae < scores.mean_mae, "{scores:?}");
    assert!(scores.memory_mape.unwrap() < 5.0, "{scores:?}");
    assert_eq!(held_out(&jobs, &families), told, "equal rows give equal trees");
    // Nothing can be held out of one family.
    let one: Vec<&str> = vec!["all"; jobs.len()];
    assert!(held_out(&jobs, &one).iter().all(Option::is_none));
}

/// A family's own jobs must not leak into what is told of it.
#[test]
fn held_out_jobs_are_not_learnt_from() {
    let mut jobs = jobs(3);
    let families: Vec<String> = jobs.iter().map(|job| job.family.clone()).collect();
    let families: Vec<&str> = families.iter().map(String::as_str).collect();
    let before = held_out(&jobs, &families);
    for job in jobs.iter_mut().filter(|job| job.family == "family 1") {
        job.utilisation = 100.0 - job.utilisation;
    }
    let after = held_out(&jobs, &families);
    for ((before, after), family) in before.iter().zip(&after).zip(&families) {
        assert_eq!(before == after, *family == "family 1", "{family}");
    }
}

#[test]
fn beyond_what_was_measured_anything_is_possible() {
    let jobs = jobs(4);
    let predictor = Predictor::fit(&jobs).unwrap();
    let inside = predictor.predict(&jobs[50].features);
    assert!(inside.outside.is_empty());
    let Interval { value, low, high } = inside.utilisation;
    assert!(0.0 <= low && low <= value && value <= high && high <= 100.0, "{inside:?}");
    assert!(high - low < 60.0 && (value - jobs[50].utilisation).abs() < 10.0, "{inside:?}");
    let outside = predictor.predict(&Features { attention: 3.0, ..jobs[50].features });
    assert_eq!(outside.outside[0].0, "attention");
    assert_eq!((outside.utilisation.low, outside.utilisation.high), (0.0, 100.0));
    assert!(Predictor::fit(&jobs[..10]).is_err());
}

#[test]
fn files_come_back_as_they_were_written_or_are_refused() {
    let predictor = Predictor::fit(&jobs(3)).unwrap();
    let file =
        PredictorFile::new(TrainedOn { jobs: 120, families: 3, ..TrainedOn::default() }, predictor);
    let text = file.text();
    let read = PredictorFile::read(&text).unwrap();
    let features = jobs(3)[7].features;
    assert_eq!(read.predictor.predict(&features), file.predictor.predict(&features));
    let error = |from: &str, to: &str| {
        let wrong = text.replacen(from, to, 1);
        assert_ne!(wrong, text, "{from}");
        PredictorFile::read(&wrong).unwrap_err().to_string()
    };
    assert!(error("\"version\":1", "\"version\":2").contains("version 2"));
    assert!(error("foretrain-utilisation", "x").contains("expected"));
    assert!(error("\"batch\"", "\"match\"").contains("features"));
    assert!(error("\"child\":[1", "\"child\":[0").contains("damaged"));
    assert!(error("\"least\":[", "\"least\":[1.0,").contains("ranges"));
    assert!(PredictorFile::read(&format!("{text}{text}")).is_err());
    // Trees that tell of more memory than numbers can hold.
    let at = text.find("\"memory\":{").unwrap();
    let (before, memory) = text.split_at(at);
    let base = memory.find("\"base\":").unwrap() + 7;
    let end = base + memory[base..].find([',', '}']).unwrap();
    let beyond = format!("{before}{}1e30{}", &memory[..base], &memory[end..]);
    assert!(PredictorFile::read(&beyond).unwrap_err().to_string().contains("of memory"));
}

/// Whatever is written into a file, no prediction is nonsense.
#[test]
fn files_that_were_changed_by_hand_are_refused() {
    let predictor = Predictor::fit(&jobs(3)).unwrap();
    let trained = TrainedOn { jobs: 120, families: 3, ..TrainedOn::default() };
    let whole: serde_json::Value =
        serde_json::from_str(&PredictorFile::new(trained, predictor).text()).unwrap();
    let refused = |key: &str, value: serde_json::Value| {
        let mut file = whole.clone();
        *file.pointer_mut(key).unwrap_or_else(|| panic!("{key}")) = value;
        PredictorFile::read(&file.to_string()).unwrap_err().to_string()
    };
    let leaf = |which: &str| {
        let nodes = whole.pointer(&format!("/predictor/{which}/trees/0/value")).unwrap();
        let last = nodes.as_array().unwrap().len() - 1;
        format!("/predictor/{which}/trees/0/value/{last}")
    };
    for (key, value, said) in [
        (leaf("memory"), 30.0, "16.00 EiB of memory; expected 1.000 KiB of memory to 16.00 TiB"),
        (leaf("memory"), -30.0, "0 B of memory"),
        ("/predictor/memory/base".into(), 40.0, "predictor.memory"),
        (leaf("utilisation"), 30.0, "% of utilisation"),
        ("/predictor/utilisation/base".into(), -9.0, "predictor.utilisation"),
        ("/predictor/utilisation/base".into(), 6.0, "its mean is 402.4288 % of utilisation"),
        ("/predictor/utilisation/base".into(), 1e4, "its mean is over a billion percent"),
        ("/predictor/left/1".into(), 5.0, "its errors go from"),
        ("/predictor/memory_left/0".into(), 5.0, "its errors go from"),
        ("/predictor/least/0".into(), 1e9, "batch goes from 1000000000"),
        ("/predictor/least/0".into(), -1.0, "batch goes from -1"),
    ] {
        let found = refused(&key, value.into());
        assert!(found.contains(said), "{key}: {found}");
    }
    let no_trees = || serde_json::Value::Array(Vec::new());
    assert!(refused("/predictor/utilisation/trees", no_trees()).contains("no trees"));
    assert!(refused("/predictor/memory/trees", no_trees()).contains("no trees"));
    assert!(refused("/trained_on/jobs", 3.into()).contains("3 jobs of 3 families"));
    assert!(refused("/trained_on/families", 0.into()).contains("0 families"));
    assert!(refused("/predictor/memory", serde_json::Value::Null).contains("memory_left"));
}

#[test]
fn tables_name_models_and_say_what_is_wrong() {
    let load = |name: &str| named(name);
    let text =
        "model,batch,utilisation,memory_mib,family\nresnet-50,32,90.5,4000,\nvgg-16,8,80,,wide\n";
    let jobs = read_table(text, &load).unwrap();
    assert_eq!((jobs[0].family.as_str(), jobs[1].family.as_str()), ("resnet", "wide"));
    assert_eq!((jobs[0].memory, jobs[1].memory), (Some(Bytes::from_mib(4000)), None));
    let error = |row: &str| {
        let text = format!("model,batch,utilisation\n{row}\n");
        read_table(&text, &load).unwrap_err().to_string()
    };
    assert!(error("resnet-50,32,101").contains("row 2"));
    assert!(error("resnet-50,0,10").contains("batch"));
    assert!(error("resnet-49,1,10").contains("no model"));
    assert!(error("resnet-50,1,NaN").contains("utilisation"));
    let text = "model,batch,utilisation,memory_mib\nresnet-50,1,10,2097153\n";
    assert!(read_table(text, &load).unwrap_err().to_string().contains("a memory of"));
    assert!(error("resnet-50,x,1").contains("cannot be read"));
    assert!(read_table("model,batch,utilisation\n", &load).is_err());
    // Parts of 1 are no percent.
    assert!(error("resnet-50,32,0.155\nvgg-16,8,0.9").contains("parts of 1"));
    let idle = "model,batch,utilisation\nresnet-50,32,0\nvgg-16,8,40\n";
    assert!(read_table(idle, &load).is_ok());
}
