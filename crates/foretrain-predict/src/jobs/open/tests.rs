use foretrain_core::Flops;
use foretrain_fleet::jobs::Features;
use foretrain_fleet::pai::Case;

use super::super::of_graphs;
use super::*;

fn terms() -> Terms {
    Terms {
        hardware: Hardware::pai_2019(),
        traffic_counts: TrafficCounts::SentAndReceived,
        optimiser: Optimiser::Momentum,
        precision: Precision::F32,
    }
}

fn resnet() -> Job {
    Case::named("ResNet50").unwrap().job()
}

#[test]
fn the_step_of_one_replica_is_the_characterised_one_without_its_exchange() {
    for case in &foretrain_fleet::pai::CASES {
        let opened = open(&case.job(), "pai-2019", &terms()).unwrap();
        let exchange = opened.step.ethernet + opened.step.pcie + opened.step.nvlink;
        let without = opened.step.total(Overlap::None) - exchange;
        assert!((opened.time - without).nanos().abs() <= 1, "{}", case.name);
        assert_eq!(opened.graph.meta.recorded_step, Some(opened.time));
    }
    // 357 MB sent and received by a ring of 8 are 102 MB of gradients.
    let opened = open(&resnet(), "t", &terms()).unwrap();
    assert_eq!(opened.gradients.value, Some(Bytes::new(102_000_000)));
}

#[test]
fn a_row_that_was_opened_is_read_again_as_it_was() {
    let job = resnet();
    let opened = open(&job, "t", &terms()).unwrap();
    let asked = Asked {
        id: "again".into(),
        model: None,
        class: job.features.class,
        cnodes: job.features.cnodes,
        gpus_per_server: 8,
        batch: Some(64),
        sequence: None,
        target: None,
        optimiser: Optimiser::Momentum,
        precision: Precision::F32,
        steps: None,
        on: None,
    };
    let row = of_graphs(&[opened.graph], &asked).unwrap();
    let flops = row.flops.value.map_or(0.0, Flops::get);
    assert!((flops / 1.56e12 - 1.0).abs() < 1e-9, "{flops}");
    assert_eq!(row.memory_access.value, job.features.memory_access);
    assert_eq!(row.input.value, job.features.input);
    assert_eq!(row.traffic.value, job.features.traffic);
    assert_eq!(row.dense_weights.value, Some(Bytes::new(204_000_000)));
    // It is of one replica without its exchange.
    assert_eq!(row.step_time.value, None);
}

#[test]
fn a_measured_step_scales_all_parts() {
    let job = Job { step_time: Some(Nanos::from_millis(527)), ..resnet() };
    let opened = open(&job, "t", &terms()).unwrap();
    let ratio = 527.0 / 263.80;
    assert!((opened.scale.unwrap() / ratio - 1.0).abs() < 1e-3);
    let millis = opened.time.nanos() as f64 / 1e6;
    assert!((millis / (253.60 * ratio) - 1.0).abs() < 1e-3, "{millis}");
}

#[test]
fn a_known_model_takes_the_place_of_missing_features() {
    let job = Job {
        id: "7".into(),
        model: "resnet-50".into(),
        batch: Some(64.0),
        gpus: Some(4.0),
        ..Job::default()
    };
    let opened = open(&job, "log.csv", &terms()).unwrap();
    assert_eq!(opened.model.as_deref(), Some("resnet-50"));
    assert_eq!((opened.work.class, opened.work.cnodes), (Class::AllReduceLocal, 4));
    let bytes = opened.gradients.value.unwrap().as_f64();
    assert!((bytes / (4.0 * 25_557_032.0) - 1.0).abs() < 1e-6, "{bytes}");
}

#[test]
fn what_a_row_holds_stays() {
    let features = Features { memory_access: None, ..resnet().features };
    let opened = open(&Job { features, ..resnet() }, "t", &terms()).unwrap();
    assert_eq!(opened.work.flops, Flops::new(1.56e12));
    assert!(opened.work.memory_access > Bytes::new(20_000_000_000));
}

#[test]
fn what_is_missing_is_named() {
    let hints = |job: &Job| {
        let error = open(job, "t", &terms()).unwrap_err();
        (error.to_string(), error.hints().join("; "))
    };
    let empty = Job { id: "7".into(), ..Job::default() };
    let (said, _) = hints(&empty);
    assert!(said.contains("job 7 has no class, flops, memory_access_bytes"), "{said}");
    let unknown = Job { model: "/etc/passwd".into(), ..empty.clone() };
    assert!(hints(&unknown).1.contains("does not list"), "a name in a table opens no file");
    let no_batch = Job { model: "resnet-50".into(), ..empty };
    assert!(hints(&no_batch).1.contains("foretrain estimate resnet-50 --on"));
    let features = Features { input: None, ..resnet().features };
    let (said, _) = hints(&Job { features, model: String::new(), ..resnet() });
    assert!(said.ends_with("has no input_bytes"), "{said}");
}
