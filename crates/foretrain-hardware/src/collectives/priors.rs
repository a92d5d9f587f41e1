//! The constants before anything is measured, by kind of interconnect and library.

use std::collections::BTreeMap;
use std::sync::{LazyLock, PoisonError, RwLock};

use serde::Deserialize;

use super::constants::{Constant, Constants};
use crate::node::{LinkKind, NicKind};

/// Who moves the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stack {
    /// NCCL, RCCL and other device libraries; the version as (major, minor), where known.
    Device(Option<(u32, u32)>),
    /// PyTorch's Gloo.
    Gloo,
    /// MPI with host buffers.
    Mpi,
}

/// Constants, how sure they are, and where they come from.
#[derive(Clone, Debug, PartialEq)]
pub struct Prior {
    /// The values.
    pub values: Constants,
    /// Standard deviation of each value's logarithm over machines of the kind.
    pub spreads: Constants,
    /// Source of the constants within a node.
    pub within: &'static str,
    /// Source of the constants between nodes.
    pub between: &'static str,
    /// Source of a CPU library's constants.
    pub host: &'static str,
}

/// The constants for a link within nodes, a NIC between them, and a library.
///
/// They are looked up for every collective of a simulation, so each combination is put together
/// once and kept; there are a few hundred.
pub fn prior(
    link: LinkKind,
    generation: Option<u32>,
    nic: NicKind,
    stack: Stack,
) -> &'static Prior {
    type Key = (u8, u32, u8, Stack);
    static KNOWN: RwLock<BTreeMap<Key, &'static Prior>> = RwLock::new(BTreeMap::new());
    let stack = match stack {
        Stack::Device(Some(version)) => Stack::Device(Some(BOOK.stand_in(version))),
        other => other,
    };
    let key = (link as u8, generation.unwrap_or(0).min(NEWEST), nic as u8, stack);
    if let Some(known) = KNOWN.read().unwrap_or_else(PoisonError::into_inner).get(&key) {
        return known;
    }
    let fresh: &'static Prior = Box::leak(Box::new(combine(link, generation, nic, stack)));
    KNOWN.write().unwrap_or_else(PoisonError::into_inner).entry(key).or_insert(fresh)
}

/// The constants common to all kinds of interconnect, without what any kind has of its own.
pub fn common_prior() -> &'static Prior {
    static COMMON: LazyLock<Prior> = LazyLock::new(|| {
        let book = &*BOOK;
        let mut prior = Prior {
            values: Constants::all(f64::NAN),
            spreads: Constants::all(f64::NAN),
            within: &book.any.source,
            between: &book.any.source,
            host: &book.gloo.source,
        };
        for row in [&book.any, &book.gloo] {
            fill(&mut prior.values, &row.values);
            fill(&mut prior.spreads, &row.spreads);
        }
        prior
    });
    &COMMON
}

/// Later generations are taken for this one.
const NEWEST: u32 = 32;

fn combine(link: LinkKind, generation: Option<u32>, nic: NicKind, stack: Stack) -> Prior {
    let book = &*BOOK;
    let within = book.within(link, generation);
    let between = book.between.iter().find(|row| row.nics.contains(&nic)).unwrap_or(&book.unknown);
    let host = if stack == Stack::Mpi { &book.mpi } else { &book.gloo };
    let mut prior = Prior {
        values: Constants::all(f64::NAN),
        spreads: Constants::all(f64::NAN),
        within: &within.source,
        between: &between.source,
        host: &host.source,
    };
    for row in [&book.any, within, between, host] {
        fill(&mut prior.values, &row.values);
        fill(&mut prior.spreads, &row.spreads);
    }
    if let Stack::Device(Some(version)) = stack {
        for row in book.version.iter().filter(|row| version < row.before) {
            for (constant, factor) in known(&row.factors) {
                prior.values[constant] *= factor;
            }
        }
    }
    prior
}

fn fill(into: &mut Constants, from: &BTreeMap<String, f64>) {
    for (constant, value) in known(from) {
        into[constant] = value;
    }
}

fn known(values: &BTreeMap<String, f64>) -> impl Iterator<Item = (Constant, f64)> + '_ {
    values.iter().filter_map(|(name, value)| Some((Constant::named(name)?, *value)))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Book {
    any: Row,
    unknown: Row,
    within: Vec<Row>,
    between: Vec<Row>,
    gloo: Row,
    mpi: Row,
    #[serde(default)]
    version: Vec<VersionRow>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Row {
    links: Vec<LinkKind>,
    generation: u32,
    nics: Vec<NicKind>,
    source: String,
    values: BTreeMap<String, f64>,
    spreads: BTreeMap<String, f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VersionRow {
    /// The first version that the factors no longer hold for.
    before: (u32, u32),
    factors: BTreeMap<String, f64>,
}

impl Book {
    /// A version that has the same constants as `version`, of a handful.
    fn stand_in(&self, version: (u32, u32)) -> (u32, u32) {
        let bounds = self.version.iter().map(|row| row.before).filter(|bound| *bound <= version);
        bounds.max().unwrap_or((0, 0))
    }

    /// The newest generation that is not newer than the link's.
    fn within(&self, link: LinkKind, generation: Option<u32>) -> &Row {
        let fits = |row: &&Row| {
            row.links.contains(&link) && row.generation <= generation.unwrap_or(0).max(1)
        };
        let newest = self.within.iter().filter(fits).max_by_key(|row| row.generation);
        newest.unwrap_or(&self.unknown)
    }
}

static BOOK: LazyLock<Book> = LazyLock::new(|| {
    // Only an edit of the embedded file can fail here, and then every test does.
    match toml::from_str(include_str!("../../data/collectives.toml")) {
        Ok(book) => book,
        Err(error) => unreachable!("built-in constants: {error}"),
    }
});

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = &'static Row> {
        let book = &*BOOK;
        let single = [&book.any, &book.unknown, &book.gloo, &book.mpi];
        single.into_iter().chain(&book.within).chain(&book.between)
    }

    #[test]
    fn every_name_is_known_and_every_value_in_bounds() {
        for row in rows() {
            for (name, value) in &row.values {
                let constant = Constant::named(name).unwrap_or_else(|| panic!("{name}"));
                let (low, high) = constant.bounds();
                assert!((low..=high).contains(value), "{name} = {value} ({})", row.source);
            }
            for (name, spread) in &row.spreads {
                assert!(Constant::named(name).is_some(), "{name}");
                assert!((0.01..=2.0).contains(spread), "{name}: {spread}");
            }
        }
        for name in BOOK.version.iter().flat_map(|row| row.factors.keys()) {
            assert!(Constant::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_combination_has_every_constant() {
        use {LinkKind as L, NicKind as N};
        let links = [L::Nvlink, L::Nvswitch, L::Xgmi, L::Pcie, L::Ici, L::Neuronlink, L::Ethernet];
        let nics = [N::Infiniband, N::Roce, N::Efa, N::Slingshot, N::GpudirectTcp, N::Ethernet];
        for link in links.into_iter().chain([L::Socket, L::None]) {
            for nic in nics.into_iter().chain([N::None]) {
                for generation in [None, Some(1), Some(3), Some(4), Some(5), Some(9)] {
                    for stack in [Stack::Device(None), Stack::Gloo, Stack::Mpi] {
                        let prior = prior(link, generation, nic, stack);
                        for (constant, value) in prior.values.iter() {
                            assert!(value.is_finite(), "{link} {nic}: {}", constant.name());
                            assert!(prior.spreads[constant] > 0.0, "{link}: {}", constant.name());
                        }
                        assert!(!prior.within.is_empty() && !prior.between.is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn the_newest_known_generation_stands_for_later_ones() {
        let of = |generation| prior(LinkKind::Nvswitch, generation, NicKind::None, Stack::Gloo);
        assert_eq!(of(Some(9)).values, of(Some(5)).values);
        assert_ne!(of(Some(3)).values, of(Some(4)).values);
    }
}
