use proptest::prelude::*;

use super::*;

fn ms(millis: f64) -> Nanos {
    Nanos::from_nanos_f64(millis * 1e6)
}

fn gb(gigabytes: f64) -> Bytes {
    Bytes::from_f64(gigabytes * 1e9)
}

/// The three models that the published functions were run on.
fn three(merged: bool) -> Edge {
    let figures = [
        (20.0, 0.3, [(8.0, 0.5), (12.0, 0.6), (20.0, 0.8)]),
        (35.0, 0.6, [(14.0, 0.9), (22.0, 1.1), (38.0, 1.5)]),
        (50.0, 1.0, [(25.0, 1.4), (40.0, 1.7), (70.0, 2.3)]),
    ];
    let models = figures.iter().enumerate().map(|(number, (load, resident, runs))| EdgeModel {
        name: number.to_string(),
        load: ms(*load),
        resident: gb(*resident),
        runs: std::iter::zip([1, 2, 4], runs)
            .map(|(batch, &(time, memory))| Run { batch, time: ms(time), memory: gb(memory) })
            .collect(),
    });
    let pairs = (0..3).flat_map(|a| (0..3).map(move |b| (a, b))).filter(|(a, b)| merged && a != b);
    let shared = pairs.map(|(model, beside)| {
        let (load, resident, _) = figures[model];
        Shared { model, beside, load: ms(load / 2.0), resident: gb(0.6 * resident) }
    });
    Edge {
        models: models.collect(),
        shared: shared.collect(),
        runtime: gb(0.8),
        rate: 30.0,
        deadline: ms(100.0),
        frames: 3000,
    }
}

/// Shares in hundredths, part of the time spent loading in millionths, evictions.
fn figures(outcome: &Outcome) -> ([u32; 3], u32, u64) {
    let shares: Vec<u32> = outcome.served.iter().map(Served::hundredths).collect();
    ([shares[0], shares[1], shares[2]], (outcome.loading * 1e6).round() as u32, outcome.evictions)
}

/// Whether layers are shared, gigabytes, batches; shares of frames, loading, evictions.
type Published = (bool, f64, [u32; 3], [u32; 3], u32, u64);

/// What the published functions gave for the same input, at the same memory.
#[test]
fn published_runs_are_reproduced() {
    let runs: [Published; 13] = [
        (false, 100.0, [1; 3], [71; 3], 0, 0),
        (false, 100.0, [2; 3], [90; 3], 0, 0),
        (false, 2.21, [1; 3], [23; 3], 673_873, 2087),
        (false, 2.21, [4, 1, 1], [93, 23, 23], 590_508, 2087),
        (false, 2.655, [1; 3], [27; 3], 621_210, 2422),
        (false, 2.655, [2; 3], [40; 3], 557_109, 1799),
        (false, 2.8775, [1; 3], [42; 3], 401_619, 1912),
        (false, 2.8775, [2; 3], [45; 3], 496_906, 2044),
        (true, 2.21, [1; 3], [25; 3], 649_480, 2243),
        (true, 2.655, [1; 3], [59; 3], 168_299, 1771),
        (true, 2.655, [2; 3], [74; 3], 173_787, 2236),
        (true, 2.8775, [1; 3], [71; 3], 205, 0),
        (true, 2.8775, [2; 3], [84; 3], 69_238, 1259),
    ];
    for (merged, memory, batches, shares, loading, evictions) in runs {
        let edge = three(merged);
        // Published levels are far above what all models need at once where nothing is loaded.
        let memory = (memory < 100.0).then(|| gb(memory));
        let outcome = simulate(&edge, memory, &batches).unwrap().expect("fits");
        assert_eq!(figures(&outcome), (shares, loading, evictions), "{merged} {memory:?}");
    }
}

#[test]
fn published_searches_are_reproduced() {
    for (merged, memory, batches, shares) in [
        (false, None, [4, 4, 4], [100, 100, 90]),
        (false, Some(2.21), [4, 1, 1], [93, 23, 23]),
        (true, Some(2.655), [2, 2, 2], [74, 74, 74]),
        (true, Some(2.8775), [2, 2, 2], [84, 84, 84]),
    ] {
        let best = search(&three(merged), memory.map(gb)).unwrap().expect("one fits");
        assert_eq!((figures(&best.outcome).0, best.tried), (shares, 27));
        assert_eq!(best.outcome.batches, batches);
    }
    let too_small = simulate(&three(false), Some(gb(2.21)), &[2, 2, 2]).unwrap();
    assert_eq!(too_small, None);
}

#[test]
fn sharing_is_compared_where_anything_is_loaded() {
    let wanted = [Memory::Unlimited, Memory::Level(0.75)];
    let compared = compare(&three(true), &wanted).unwrap();
    let seen: Vec<_> = compared.iter().map(|one| (one.memory.is_some(), one.shared)).collect();
    assert_eq!(seen, [(false, false), (true, false), (true, true)]);
    let worst = |one: &Compared| {
        let served = &one.best.as_ref().expect("fits").outcome.served;
        served.iter().map(Served::hundredths).min().unwrap()
    };
    assert!(worst(&compared[2]) > worst(&compared[1]));
    assert_eq!(compare(&three(false), &wanted).unwrap().len(), 2);
}

/// Published levels are these up to the hundredth that their rounding of 2.2 in binary adds.
#[test]
fn levels_lie_between_the_largest_model_and_all() {
    let edge = three(false);
    let at = |level| edge.memory(Memory::Level(level)).unwrap().as_f64() / 1e9;
    for (level, published) in [(0.0, 2.21), (0.5, 2.655), (0.75, 2.8775)] {
        assert!((at(level) - published).abs() < 0.011, "{level}: {}", at(level));
    }
    assert_eq!(at(1.0), 3.1);
    assert_eq!(edge.memory(Memory::Unlimited), None);
}

#[test]
fn nonsense_is_refused() {
    let with = |change: &dyn Fn(&mut Edge)| {
        let mut edge = three(true);
        change(&mut edge);
        simulate(&edge, None, &[1, 1, 1]).unwrap_err().to_string()
    };
    assert!(with(&|edge| edge.rate = 0.0).contains("frames per second"));
    assert!(with(&|edge| edge.rate = f64::NAN).contains("frames per second"));
    assert!(with(&|edge| edge.rate = 1e-7).contains("a century at most"));
    assert!(with(&|edge| edge.rate = 1e-300).contains("a century at most"));
    assert!(with(&|edge| edge.models[1].name = "0".into()).contains("two models"));
    assert!(with(&|edge| edge.models[2].runs.clear()).contains("batches"));
    assert!(with(&|edge| edge.models[2].runs[0].time = Nanos::ZERO).contains("run of"));
    assert!(with(&|edge| edge.shared[0].beside = 9).contains("names a model"));
    assert!(simulate(&three(true), None, &[3, 1, 1]).unwrap_err().to_string().contains("3 frames"));
    assert!(simulate(&three(true), None, &[1]).is_err());
}

/// A frame a year is waited for at once.
#[test]
fn slow_streams_take_no_longer_to_play() {
    let edge = Edge { rate: 3e-8, frames: 50, ..three(false) };
    let outcome = simulate(&edge, None, &[1, 1, 1]).unwrap().expect("fits");
    assert!(outcome.served.iter().all(|served| served.skipped == 0), "{outcome:?}");
    let edge = Edge { frames: 3000, rate: 1e-6, ..edge };
    let many = vec![three(false).models[0].clone(); 20];
    let models = many
        .into_iter()
        .enumerate()
        .map(|(number, model)| EdgeModel { name: number.to_string(), ..model });
    let error = search(&Edge { models: models.collect(), ..edge }, None).unwrap_err();
    assert!(error.to_string().contains("frames in all"), "{error}");
}

const DESCRIBED: &str = r#"
frames_per_second = 10
[[model]]
name = "cars"
load_ms = 20
load_gb = 0.3
run = [{ batch = 1, ms = 8, gb = 0.5 }]
[[model]]
name = "people"
load_ms = 35
load_gb = 0.6
run = [{ batch = 1, ms = 14, gb = 0.9 }, { batch = 4, ms = 38, gb = 1.5 }]
[[shared]]
model = "people"
beside = "cars"
load_ms = 10
load_gb = 0.2
"#;

#[test]
fn descriptions_are_read_or_refused_with_the_place() {
    let edge = parse(DESCRIBED).unwrap();
    assert_eq!((edge.models.len(), edge.shared[0].model, edge.frames), (2, 1, 3000));
    let error = |from: &str, to: &str| parse(&DESCRIBED.replace(from, to)).unwrap_err().to_string();
    assert!(error("beside = \"cars\"", "beside = \"dogs\"").contains("dogs"));
    assert!(error("load_ms = 35", "load_ms = -35").contains("people"));
    assert!(error("load_ms = 35", "load_ms = nan").contains("people"));
    assert!(error("batch = 4", "batch = 1").contains("ascend"));
    assert!(error("load_gb = 0.6", "load_mb = 0.6").contains("load_mb"));
}

proptest! {
    /// Every frame is processed or skipped, once; more memory never hurts a device that loads
    /// nothing else, and equal input gives equal output.
    #[test]
    fn frames_are_conserved(
        frames in 1_u32..400,
        rate in 1.0..200.0_f64,
        deadline in 1.0..500.0_f64,
        level in 0.0..=1.0_f64,
        merged: bool,
    ) {
        let edge = Edge { frames, rate, deadline: ms(deadline), ..three(merged) };
        let memory = edge.memory(Memory::Level(level));
        let once = simulate(&edge, memory, &[1, 1, 1]).unwrap();
        prop_assert_eq!(&simulate(&edge, memory, &[1, 1, 1]).unwrap(), &once);
        let outcome = once.expect("a frame of each fits at the least level");
        for served in &outcome.served {
            prop_assert_eq!(served.processed + served.skipped, frames);
            prop_assert_eq!(served.frames, frames);
        }
        prop_assert!((0.0..=1.0).contains(&outcome.loading));
        // Every stream's last frame is always processed.
        prop_assert!(outcome.served.iter().all(|served| served.processed >= 1));
    }
}
