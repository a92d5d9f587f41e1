//! From entries to fabrics: levels and how they are wired.

use foretrain_core::{InputError, Nanos};

use crate::book::Book;
use crate::build::or_list;
use crate::cluster::{Fabric, Level};
use crate::quantity::{Count, shown};
use crate::read::Fault;
use crate::spec::{LevelSpec, TopologyKind};
use crate::topology::Topology;

pub(crate) fn named_fabric(book: &Book, name: &str, path: &[&str]) -> Result<Fabric, Fault> {
    let spec = book.fabrics.get(name).ok_or_else(|| {
        let fault = Fault::new(path, format!("no fabric {}", shown(name)));
        or_list(fault, name, book.fabrics.names().map(str::to_owned))
    })?;
    let rows = spec.levels.as_deref().unwrap_or_default();
    let path = ["fabrics", name];
    let fabric = Fabric {
        name: name.to_owned(),
        levels: levels(rows, &["fabrics", name, "levels"])?,
        rail_optimised: spec.rail_optimised.unwrap_or(false),
        in_network_reduction: spec.in_network_reduction.unwrap_or(false),
        topology: topology(spec.topology, spec.dimensions.as_deref(), Topology::FatTree, &path)?,
    };
    check_topology(&fabric, &path)?;
    Ok(fabric)
}

pub(crate) fn levels(rows: &[LevelSpec], path: &[&str]) -> Result<Vec<Level>, Fault> {
    const MOST: usize = 8;
    if rows.is_empty() || rows.len() > MOST {
        let message = format!("expected 1 to {MOST} levels, found {}", rows.len());
        return Err(Fault::new(path, message)
            .hint("add a level such as `{ name = \"leaf\", nodes = 32, latency = \"2 us\" }`"));
    }
    let mut levels: Vec<Level> = Vec::with_capacity(rows.len());
    for (at, row) in rows.iter().enumerate() {
        let level = level(at, row, rows.len(), path)?;
        if let Some(below) = levels.last()
            && (below.nodes >= level.nodes || below.latency > level.latency)
        {
            let message = format!(
                "{} ({} nodes, {}) is not larger and farther than {} ({} nodes, {})",
                level.name, level.nodes, level.latency, below.name, below.nodes, below.latency
            );
            return Err(level_fault(at, path, message)
                .hint("order levels from the nodes outwards; nodes and latency grow"));
        }
        levels.push(level);
    }
    Ok(levels)
}

fn level_fault(at: usize, path: &[&str], message: String) -> Fault {
    let at = at.to_string();
    Fault::new(&[path, &[at.as_str()]].concat(), message)
}

fn level(at: usize, row: &LevelSpec, rows: usize, path: &[&str]) -> Result<Level, Fault> {
    let nodes = match row.nodes {
        Some(count) => count.0,
        None if at + 1 == rows => Level::UNBOUNDED,
        None => {
            return Err(level_fault(at, path, "only the last level may leave out nodes".into())
                .hint("add `nodes = 32`: how many nodes meet at this level"));
        }
    };
    let latency: Nanos = match row.latency {
        Some(time) => time.0,
        None => {
            return Err(level_fault(at, path, "the level lacks its latency".into())
                .hint("add `latency = \"2 us\"`: one way, through this level"));
        }
    };
    Ok(Level {
        name: row.name.clone().unwrap_or_else(|| format!("level {}", at + 1)),
        nodes,
        oversubscription: row.oversubscription.map_or(1.0, |ratio| ratio.0),
        latency,
    })
}

pub(crate) fn fault_of(error: &InputError, path: &[&str]) -> Fault {
    error.hints().iter().cloned().fold(Fault::new(path, error.message()), Fault::hint)
}

/// What is written, else what was known.
pub(crate) fn topology(
    kind: Option<TopologyKind>,
    dimensions: Option<&[Count<1, 65_536>]>,
    known: Topology,
    path: &[&str],
) -> Result<Topology, Fault> {
    let sizes = dimensions.map(|sizes| sizes.iter().map(|size| size.0).collect::<Vec<u32>>());
    let topology = match (kind, known) {
        (Some(TopologyKind::FatTree), _) => Topology::FatTree,
        (Some(TopologyKind::Dragonfly), _) => Topology::Dragonfly,
        (Some(TopologyKind::Torus), Topology::Torus { dimensions: known })
        | (None, Topology::Torus { dimensions: known }) => {
            return Ok(Topology::Torus { dimensions: sizes.unwrap_or(known) });
        }
        (Some(TopologyKind::Torus), _) => {
            return Ok(Topology::Torus { dimensions: sizes.unwrap_or_default() });
        }
        (None, known) => known,
    };
    if sizes.is_some() {
        let message = format!("a {} has no dimensions", topology.as_str());
        return Err(Fault::new(&[path, &["dimensions"]].concat(), message)
            .hint("leave them out, or write topology = \"torus\""));
    }
    Ok(topology)
}

pub(crate) fn check_topology(fabric: &Fabric, path: &[&str]) -> Result<(), Fault> {
    let key = match fabric.topology {
        Topology::Torus { .. } => "dimensions",
        _ => "topology",
    };
    fabric.topology.check(fabric).map_err(|error| fault_of(&error, &[path, &[key]].concat()))
}
