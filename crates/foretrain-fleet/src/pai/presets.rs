//! Six models of the study, as recalled. Their weights hold optimiser state, their traffic what a
//! replica sends and receives.

use foretrain_core::{Bytes, Flops};

use super::work::Work;
use crate::jobs::{Class, Features, Job, TrafficCounts};

/// A model of the study.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    /// Its name.
    pub name: &'static str,
    /// Its domain.
    pub domain: &'static str,
    /// Samples per step and replica (tokens of NMT).
    pub batch: u32,
    /// What a step does.
    pub work: Work,
}

const fn case(
    (name, domain, class, batch): (&'static str, &'static str, Class, u32),
    (flops, memory, input, traffic): (f64, u64, u64, u64),
    (dense, embedding): (u64, u64),
) -> Case {
    let cnodes = match class {
        Class::OneWorkerOneGpu => 1,
        _ => 8,
    };
    let work = Work {
        class,
        cnodes,
        flops: Flops::new(flops),
        memory_access: Bytes::new(memory),
        input: Bytes::new(input),
        traffic: Bytes::new(traffic),
        dense_weights: Some(Bytes::new(dense)),
        embedding_weights: Some(Bytes::new(embedding)),
        embedding_touched: None,
    };
    Case { name, domain, batch, work }
}

const KB: u64 = 1_000;
const MB: u64 = 1_000_000;
/// A hundredth of a gigabyte.
const CENTI_GB: u64 = 10_000_000;

/// The six models. The number of replicas is not recalled: 8, by the traffic of a ring of 8.
pub const CASES: [Case; 6] = [
    case(
        ("ResNet50", "computer vision", Class::AllReduceLocal, 64),
        (1.56e12, 3_190 * CENTI_GB, 38 * MB, 357 * MB),
        (204 * MB, 0),
    ),
    case(
        ("NMT", "translation", Class::AllReduceLocal, 6144),
        (2.5e12, 10_160 * CENTI_GB, 22 * KB, 133 * CENTI_GB),
        (706 * MB, 819 * MB),
    ),
    case(
        ("BERT", "question answering", Class::AllReduceLocal, 12),
        (2.1e12, 10_730 * CENTI_GB, 46 * KB, 150 * CENTI_GB),
        (1_000 * MB, 284 * MB),
    ),
    case(
        ("Speech", "speech recognition", Class::OneWorkerOneGpu, 32),
        (7.9e12, 2_040 * CENTI_GB, 804 * MB, 728 * MB),
        (416 * MB, 0),
    ),
    case(
        ("Multi-Interests", "recommendation", Class::PsWorker, 2048),
        (105.8e9, 10_040 * CENTI_GB, 261 * MB, 122 * MB),
        (1_190 * KB, 23_945 * CENTI_GB),
    ),
    case(
        ("GCN", "recommendation", Class::Pearl, 512),
        (330.7e9, 2_579 * CENTI_GB, 1_200 * KB, 300 * CENTI_GB),
        (207 * MB, 5_400 * CENTI_GB),
    ),
];

impl Case {
    /// The case of this name, in any letters.
    pub fn named(name: &str) -> Option<&'static Case> {
        CASES.iter().find(|case| case.name.eq_ignore_ascii_case(name))
    }

    /// As a row of a table.
    pub fn job(&self) -> Job {
        let Work { class, cnodes, flops, memory_access, input, traffic, .. } = self.work;
        let features = Features {
            class: Some(class),
            cnodes: Some(cnodes),
            flops: Some(flops),
            memory_access: Some(memory_access),
            input: Some(input),
            traffic: Some(traffic),
            traffic_counts: Some(TrafficCounts::SentAndReceived),
            dense_weights: self.work.dense_weights,
            embedding_weights: self.work.embedding_weights,
            ..Features::default()
        };
        let (model, batch) = (self.name.to_owned(), Some(f64::from(self.batch)));
        Job { id: self.name.to_owned(), model, batch, features, ..Job::default() }
    }

    /// The same features in another class: nothing but the medium changes, and no root is shared.
    pub fn in_class(&self, class: Class) -> Work {
        Work { class, ..self.work }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pai::hardware::{Hardware, Resource};
    use crate::pai::step::{Overlap, Step};

    fn ms(time: foretrain_core::Nanos) -> String {
        format!("{:.2}", time.millis_f64())
    }

    /// Derived by hand from the recalled features and the base machine.
    #[test]
    fn steps_of_the_six_models() {
        let golden = [
            ("ResNet50", ["5.43", "202.60", "45.57", "10.20", "263.80", "248.17"]),
            ("NMT", ["0.00", "324.68", "145.14", "38.00", "507.82", "469.82"]),
            ("BERT", ["0.01", "272.73", "153.29", "42.86", "468.88", "426.01"]),
            ("Speech", ["114.86", "1025.97", "29.14", "0.00", "1169.97", "1055.12"]),
            ("Multi-Interests", ["37.29", "13.74", "143.43", "73.20", "267.65", "157.17"]),
            ("GCN", ["0.17", "42.95", "36.84", "85.71", "165.68", "85.71"]),
        ];
        for (name, golden) in golden {
            let step = Step::of(&Case::named(name).unwrap().work, &Hardware::pai_2019());
            let own = [
                step.input,
                step.flops,
                step.memory,
                step.traffic(),
                step.total(Overlap::None),
                step.total(Overlap::Ideal),
            ];
            assert_eq!(own.map(ms), golden, "{name}");
        }
    }

    #[test]
    fn shares_of_the_six_models() {
        let golden = [
            ["2.1", "76.8", "17.3", "3.9"],
            ["0.0", "63.9", "28.6", "7.5"],
            ["0.0", "58.2", "32.7", "9.1"],
            ["9.8", "87.7", "2.5", "0.0"],
            ["13.9", "5.1", "53.6", "27.3"],
            ["0.1", "25.9", "22.2", "51.7"],
        ];
        for (case, golden) in CASES.iter().zip(golden) {
            let shares = Step::of(&case.work, &Hardware::pai_2019()).shares();
            assert_eq!(
                shares.map(|share| format!("{:.1}", share * 100.0)),
                golden,
                "{}",
                case.name
            );
        }
    }

    #[test]
    fn the_same_features_under_other_classes() {
        let golden = [
            ("Multi-Interests", ["194.45", "211.88", "267.65", "197.94", "253.71"]),
            ("ResNet50", ["253.60", "304.60", "467.80", "263.80", "427.00"]),
            ("BERT", ["426.02", "640.31", "1326.02", "468.88", "1154.59"]),
            ("GCN", ["79.96", "508.53", "1879.96", "165.68", "1537.11"]),
        ];
        for (name, golden) in golden {
            let case = Case::named(name).unwrap();
            let sums = Class::ALL.map(|class| {
                ms(Step::of(&case.in_class(class), &Hardware::pai_2019()).total(Overlap::None))
            });
            assert_eq!(sums[..5], golden, "{name}");
        }
    }

    #[test]
    fn one_resource_at_a_time() {
        let golden = [
            (Resource::Ethernet, 0.4, [1.0, 1.0, 1.0, 1.0, 0.762, 1.0]),
            (Resource::Ethernet, 4.0, [1.0, 1.0, 1.0, 1.0, 1.185, 1.0]),
            (Resource::Pcie, 5.0, [1.017, 1.0, 1.0, 1.085, 1.196, 1.001]),
            (Resource::Flops, 8.0 / 11.0, [0.776, 0.807, 0.821, 0.753, 0.981, 0.911]),
            (Resource::Flops, 16.0 / 11.0, [1.316, 1.250, 1.222, 1.377, 1.016, 1.088]),
            (Resource::Flops, 32.0 / 11.0, [2.016, 1.723, 1.617, 2.356, 1.035, 1.205]),
            (Resource::Flops, 64.0 / 11.0, [2.747, 2.125, 1.929, 3.652, 1.044, 1.273]),
            (Resource::Memory, 2.0, [1.095, 1.167, 1.195, 1.013, 1.366, 1.125]),
            (Resource::Memory, 4.0, [1.149, 1.273, 1.325, 1.019, 1.672, 1.200]),
            (Resource::NvLink, 0.5, [0.963, 0.930, 0.916, 1.0, 1.0, 0.659]),
            (Resource::NvLink, 3.0, [1.026, 1.053, 1.065, 1.0, 1.0, 1.526]),
        ];
        for (resource, factor, golden) in golden {
            for (case, golden) in CASES.iter().zip(golden) {
                let base = Step::of(&case.work, &Hardware::pai_2019());
                let mut times = [1.0; 5];
                times[resource.index()] = factor;
                let faster = base.faster(&times);
                let total = |step: &Step| step.total(Overlap::None).secs_f64();
                let speed_up = total(&base) / total(&faster);
                assert_eq!(format!("{speed_up:.3}"), format!("{golden:.3}"), "{}", case.name);
            }
        }
    }
}
