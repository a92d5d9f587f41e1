//! A catalogue file that adds a calibration to a known cluster.

use std::collections::BTreeMap;

use serde::Serialize;

use super::calibration::{Calibration, Choice, Sweep};
use super::constants::Constant;
use super::processors::ProcessorSweep;
use crate::catalogue::Catalogue;
use crate::cluster::Cluster;

/// What a calibrated cluster is built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// A cluster of a catalogue.
    Cluster(String),
    /// As many nodes of a type as asked, on their usual fabric.
    Node(String),
}

impl Base {
    /// What `cluster` is of a catalogue, and whether that is the built-in one, which every reader
    /// of a file has. A cluster that differs from a built-in one in its calibration alone is that.
    pub fn of(cluster: &Cluster, catalogue: &Catalogue) -> (Self, bool) {
        let builtin = Catalogue::builtin();
        let same = |known: &&Cluster| {
            (&known.node, &known.fabric, known.nodes)
                == (&cluster.node, &cluster.fabric, cluster.nodes)
        };
        let named = |known: &&Cluster| known.name == cluster.name;
        let cluster_or_node = |matches: &dyn Fn(&&Cluster) -> bool| {
            let name = |known: &Cluster| known.name.clone();
            let found = builtin.clusters().find(matches).map(name).map(Self::Cluster);
            found.or_else(|| builtin.node_clusters().find(matches).map(name).map(Self::Node))
        };
        let known = cluster_or_node(&|known| named(known) && same(known))
            .or_else(|| cluster_or_node(&|known| same(known)));
        match known {
            Some(base) => (base, true),
            None if catalogue.clusters().any(|known| named(&known)) => {
                (Self::Cluster(cluster.name.clone()), false)
            }
            None => (Self::Node(cluster.name.clone()), false),
        }
    }

    /// Its name in the catalogue.
    pub fn name(&self) -> &str {
        match self {
            Self::Cluster(name) | Self::Node(name) => name,
        }
    }
}

/// A file with one cluster: a known one and what was measured on it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterFile {
    /// The cluster's name.
    pub name: String,
    /// What it is otherwise.
    pub base: Base,
    /// What was measured.
    pub calibration: Calibration,
}

#[derive(Serialize)]
struct File<'a> {
    clusters: BTreeMap<&'a str, Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    based_on: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<&'a str>,
    source: &'static str,
    collectives: Collectives<'a>,
}

#[derive(Serialize)]
struct Collectives<'a> {
    logs: &'a [String],
    choice: Choice,
    #[serde(skip_serializing_if = "Option::is_none")]
    nccl: Option<String>,
    noise: f64,
    constants: BTreeMap<&'static str, f64>,
    spreads: BTreeMap<&'static str, f64>,
    measured: &'a [Sweep],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    processors: &'a [ProcessorSweep],
}

impl ClusterFile {
    /// The file's text; each line of `comment` stands at its head. Figures have four significant
    /// digits (see [`Calibration::rounded`]).
    pub fn text(&self, comment: &[String]) -> String {
        let calibration = self.calibration.clone().rounded();
        let (based_on, node) = match &self.base {
            Base::Cluster(name) => (Some(name.as_str()), None),
            Base::Node(name) => (None, Some(name.as_str())),
        };
        let entry = Entry {
            based_on,
            node,
            source: "calibrated",
            collectives: Collectives {
                logs: &calibration.logs,
                choice: calibration.choice,
                nccl: calibration.nccl.map(|(major, minor)| format!("{major}.{minor}")),
                noise: calibration.noise,
                constants: named(&calibration.constants),
                spreads: named(&calibration.spreads),
                measured: &calibration.measured,
                processors: &calibration.processors,
            },
        };
        let file = File { clusters: BTreeMap::from([(self.name.as_str(), entry)]) };
        // Strings, finite numbers, lists and tables with string keys: TOML has them all.
        let body = toml::to_string(&file)
            .unwrap_or_else(|error| unreachable!("a calibration is plain data: {error}"));
        let plain = |line: &String| {
            let text: String = line.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
            format!("# {text}\n")
        };
        format!("{}\n{body}", comment.iter().map(plain).collect::<String>())
    }
}

fn named(values: &BTreeMap<Constant, f64>) -> BTreeMap<&'static str, f64> {
    values.iter().map(|(constant, &value)| (constant.name(), value)).collect()
}

#[cfg(test)]
mod tests {
    use foretrain_core::Bytes;
    use proptest::prelude::*;

    use super::*;

    fn constants() -> impl Strategy<Value = BTreeMap<Constant, f64>> {
        prop::collection::btree_map(
            prop::sample::select(&Constant::ALL[..]),
            0.0..1.0f64,
            0..Constant::COUNT,
        )
        .prop_map(|shares| {
            let value = |(constant, share): (Constant, f64)| {
                let (low, high) = constant.bounds();
                (constant, (low.ln() + share * (high / low).ln()).exp().clamp(low, high))
            };
            shares.into_iter().map(value).collect()
        })
    }

    fn sweep() -> impl Strategy<Value = Sweep> {
        let sizes = prop::collection::btree_map(0..1u64 << 40, -6.9..6.9f64, 1..40);
        (sizes, 2..5000u32, any::<bool>(), any::<bool>()).prop_map(|(points, ranks, odd, ways)| {
            Sweep {
                collective: "all-gather".into(),
                ranks,
                nodes: ranks.div_ceil(8),
                odd,
                ways: if ways { vec!["ring LL".into(); points.len()] } else { Vec::new() },
                sizes: points.keys().copied().map(Bytes::new).collect(),
                ratios: points.values().map(|log| log.exp()).collect(),
            }
        })
    }

    fn processors() -> impl Strategy<Value = ProcessorSweep> {
        let sizes = prop::collection::btree_map(0..1u64 << 40, -3.0..12.0f64, 1..9);
        (sizes, 2..5000u32).prop_map(|(points, ranks)| ProcessorSweep {
            collective: "broadcast".into(),
            ranks,
            nodes: 1,
            sizes: points.keys().copied().map(Bytes::new).collect(),
            times_us: points.values().map(|log| log.exp()).collect(),
        })
    }

    fn calibration() -> impl Strategy<Value = Calibration> {
        (
            prop::collection::vec(any::<String>(), 0..4),
            any::<bool>(),
            prop::option::of((0..9u32, 0..99u32)),
            0.0..1.0f64,
            constants(),
            prop::collection::vec(sweep(), 0..5),
            prop::collection::vec(processors(), 0..3),
        )
            .prop_map(|(logs, tuner, nccl, noise, constants, measured, processors)| {
                Calibration {
                    logs,
                    choice: if tuner { Choice::Tuner } else { Choice::Fastest },
                    nccl,
                    noise,
                    spreads: constants.keys().map(|&constant| (constant, noise)).collect(),
                    constants,
                    measured,
                    processors,
                }
            })
    }

    fn read_back(file: &ClusterFile, comment: &[String]) -> Cluster {
        let text = file.text(comment);
        let mut catalogue = Catalogue::builtin().clone();
        catalogue.load_str(&text, "own.toml").unwrap_or_else(|error| panic!("{error}\n{text}"));
        catalogue.cluster(&file.name).unwrap()
    }

    proptest! {
        /// Whatever is written is read as it was.
        #[test]
        fn a_file_holds_the_calibration(
            calibration in calibration(),
            comment in prop::collection::vec(any::<String>(), 0..3),
            name in "[a-z][a-z0-9._-]{0,20}[a-z]",
        ) {
            let base = Base::Node("dgx-a100".into());
            let file = ClusterFile { name, base, calibration };
            let read = read_back(&file, &comment);
            prop_assert_eq!(read.collectives.as_deref(), Some(&file.calibration.rounded()));
        }
    }

    #[test]
    fn figures_keep_four_digits() {
        let calibration = Calibration {
            logs: Vec::new(),
            choice: Choice::Tuner,
            nccl: Some((2, 18)),
            noise: 0.1 / 3.0,
            constants: BTreeMap::from([(Constant::Launch, 20.0 / 3.0)]),
            spreads: BTreeMap::new(),
            measured: Vec::new(),
            processors: Vec::new(),
        };
        let base = Base::Cluster("perlmutter".into());
        let file = ClusterFile { name: "our".into(), base, calibration };
        let text = file.text(&["from\na log".into()]);
        assert!(text.starts_with("# from?a log\n\n[clusters.our]\n"), "{text}");
        for line in
            ["based_on = \"perlmutter\"", "noise = 0.03333", "nccl = \"2.18\"", "launch_us = 6.667"]
        {
            assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_calibrated_cluster_is_what_it_was_before() {
        let mut catalogue = Catalogue::builtin().clone();
        for (name, base) in [
            ("perlmutter", Base::Cluster("perlmutter".into())),
            ("p4d", Base::Node("aws-p4d".into())),
        ] {
            let cluster = catalogue.cluster(name).unwrap();
            assert_eq!(Base::of(&cluster, &catalogue), (base.clone(), true));
            let calibrated = Cluster { name: "my-own".into(), ..cluster };
            assert_eq!(Base::of(&calibrated, &catalogue), (base, true));
        }
        catalogue
            .load_str("[nodes.ours]\nbased_on = \"dgx-a100\"\nnics = 4\n[clusters.our-room]\nnode = \"ours\"\nnodes = 8", "our.toml")
            .unwrap();
        for (name, base) in
            [("ours", Base::Node("ours".into())), ("our-room", Base::Cluster("our-room".into()))]
        {
            let cluster = catalogue.cluster(name).unwrap();
            assert_eq!(Base::of(&cluster, &catalogue), (base, false));
        }
    }
}
