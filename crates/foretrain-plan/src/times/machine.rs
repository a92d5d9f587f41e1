//! One cluster's answers, remembered.

use std::cell::RefCell;
use std::collections::BTreeMap;

use foretrain_core::{Bytes, Evidence, EvidenceKind, Nanos, Result};
use foretrain_cost::kernels::{Basis, KernelModel, KernelTime, Operation, Sustained};
use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, collective_time};
use foretrain_graph::CollectiveKind;
use foretrain_hardware::Cluster;
use rustc_hash::FxHashMap;

use super::factors::Factors;
use super::pass::{Part, PassTime};
use crate::layout::Ranks;
use crate::lower::{Comm, Group, Owner, Work};
use crate::step::Host;

/// A collective's time, and the relative half-width of its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CommTime {
    /// The time.
    pub time: Nanos,
    /// Half of an 80 % interval over the time.
    pub relative_spread: f64,
}

type Asked = (CollectiveKind, Bytes, u32, u32);

/// What a cluster needs for work. Answers are kept, since layouts share most of their kernels and
/// collectives; one value serves one thread.
#[derive(Debug)]
pub struct Machine<'a> {
    cluster: &'a Cluster,
    kernels: KernelModel,
    factors: Factors,
    sustained: Sustained,
    host: Host,
    known_kernels: RefCell<FxHashMap<Operation, KernelTime>>,
    fabrics: RefCell<FxHashMap<(u32, u32), Fabric>>,
    known_comms: RefCell<FxHashMap<Asked, CommTime>>,
}

impl<'a> Machine<'a> {
    /// With kernel times of `kernels`.
    pub fn new(cluster: &'a Cluster, kernels: KernelModel) -> Self {
        let sustained = Sustained::of(kernels.device());
        Self {
            cluster,
            kernels,
            sustained,
            host: Host::of(cluster),
            factors: Factors::default(),
            known_kernels: RefCell::default(),
            fabrics: RefCell::default(),
            known_comms: RefCell::default(),
        }
    }

    /// With measured factors on its times.
    #[must_use]
    pub fn with_factors(mut self, factors: Factors) -> Self {
        self.factors = factors;
        self.known_kernels = RefCell::default();
        self.known_comms = RefCell::default();
        self
    }

    /// With another value for what its matrix units keep up under power.
    #[must_use]
    pub fn with_sustained(mut self, sustained: Sustained) -> Self {
        self.sustained = sustained;
        self.known_kernels = RefCell::default();
        self
    }

    /// Its hosts.
    pub fn host(&self) -> Host {
        self.host
    }

    /// Factors on its times.
    pub fn factors(&self) -> Factors {
        self.factors
    }

    /// The cluster.
    pub fn cluster(&self) -> &'a Cluster {
        self.cluster
    }

    /// Kernel times.
    pub fn kernels(&self) -> &KernelModel {
        &self.kernels
    }

    /// What the times of kernels and collectives met so far rest on.
    pub fn evidence(&self) -> Vec<Evidence> {
        let mut seen: BTreeMap<Basis, (usize, f64)> = BTreeMap::new();
        // Sums of spreads must not depend on the order of a hash table.
        let mut known: Vec<KernelTime> = self.known_kernels.borrow().values().copied().collect();
        known.sort_by(|a, b| a.relative_spread.total_cmp(&b.relative_spread));
        for known in known {
            let (count, spread) = seen.entry(known.basis).or_default();
            *count += 1;
            *spread += known.relative_spread;
        }
        let device = &self.kernels.device().name;
        let kernels = seen.into_iter().map(|(basis, (count, spread))| {
            let (kind, source) = match basis {
                Basis::Fitted => (EvidenceKind::Calibrated, format!("curves of {device}")),
                Basis::Borrowed => {
                    (EvidenceKind::Inferred, format!("curves of {device}'s nearest relatives"))
                }
                Basis::Limits => (EvidenceKind::Assumed, format!("limits of {device} alone")),
            };
            let what = format!("times of {count} kinds of kernels");
            Evidence::new(kind, what, source, spread / count as f64 / foretrain_core::estimate::Z80)
        });
        let mut evidence: Vec<Evidence> = kernels.collect();
        let comms = self.known_comms.borrow();
        if !comms.is_empty() {
            let mut spreads: Vec<f64> = comms.values().map(|comm| comm.relative_spread).collect();
            spreads.sort_by(f64::total_cmp);
            let spread: f64 = spreads.iter().sum();
            let source = match &self.cluster.collectives {
                Some(_) => "the cluster's calibration",
                None => "priors fitted to public measurements",
            };
            evidence.push(Evidence::new(
                EvidenceKind::Calibrated,
                format!("times of {} kinds of collectives", comms.len()),
                source,
                spread / comms.len() as f64 / foretrain_core::estimate::Z80,
            ));
        }
        evidence
    }

    /// A kernel alone on the device.
    pub fn kernel(&self, operation: &Operation) -> KernelTime {
        if let Some(known) = self.known_kernels.borrow().get(operation) {
            return *known;
        }
        let mut time = self.kernels.time(operation);
        let factor = match operation {
            Operation::Memory(_) => self.factors.memory,
            _ => self.factors.products,
        };
        let under_power = self.sustained.least(self.kernels.device(), operation);
        time.time = time.time.max(under_power).scale(factor);
        self.known_kernels.borrow_mut().insert(*operation, time);
        time
    }

    /// A collective among the members of a group.
    ///
    /// # Errors
    /// If the cluster cannot hold the group.
    pub fn collective(
        &self,
        kind: CollectiveKind,
        bytes: Bytes,
        group: &GroupPlacement,
    ) -> Result<CommTime> {
        let ranks = group.ranks();
        if ranks <= 1 || bytes == Bytes::ZERO {
            return Ok(CommTime { time: Nanos::ZERO, relative_spread: 0.0 });
        }
        let asked = (kind, bytes, ranks, group.stride());
        if let Some(known) = self.known_comms.borrow().get(&asked) {
            return Ok(*known);
        }
        let place = (ranks, group.stride());
        if !self.fabrics.borrow().contains_key(&place) {
            let fabric = Fabric::for_group(self.cluster, group)?;
            self.fabrics.borrow_mut().insert(place, fabric);
        }
        let fabrics = self.fabrics.borrow();
        let Some(fabric) = fabrics.get(&place) else {
            return Ok(CommTime { time: Nanos::ZERO, relative_spread: 0.0 });
        };
        let answer = collective_time(&CollectiveCall::new(kind, bytes), fabric).time;
        let time = CommTime { time: answer.value, relative_spread: answer.relative_half_width() };
        self.known_comms.borrow_mut().insert(asked, time);
        Ok(time)
    }

    /// A communication of a layer's pass.
    ///
    /// # Errors
    /// As [`collective`](Self::collective).
    pub fn comm(&self, comm: &Comm, ranks: &Ranks) -> Result<CommTime> {
        let group = match comm.group {
            Group::Tensor => ranks.tensor(),
            Group::Context => ranks.context(),
            Group::Expert => ranks.expert(),
            Group::ExpertTensor => ranks.expert_tensor(),
        };
        if comm.copies > 1 {
            return self.once_per_place(comm, &group);
        }
        if comm.kind != CollectiveKind::SendRecv {
            return self.collective(comm.kind, comm.bytes, &group);
        }
        // A ring: as many hops as there are other ranks, each with its part of the bytes.
        let hops = u64::from(group.ranks().saturating_sub(1)).max(1);
        let one = Bytes::new(comm.bytes.get().div_ceil(hops));
        let hop = self.collective(comm.kind, one, &group)?;
        Ok(CommTime { time: hop.time.scale(hops as f64), ..hop })
    }

    /// An exchange in which each token goes once to each rank that holds some of its experts, and
    /// crosses once to each node. With `k` copies spread evenly over `n` places,
    /// `n (1 - (1 - 1/n)^k)` of the places get one.
    fn once_per_place(&self, comm: &Comm, group: &GroupPlacement) -> Result<CommTime> {
        let copies = f64::from(comm.copies);
        let once = |places: f64| {
            let distinct = places * (1.0 - (1.0 - 1.0 / places).powf(copies));
            Bytes::from_f64(comm.bytes.as_f64() * distinct / copies)
        };
        let to_ranks = once(f64::from(group.ranks()));
        let plain = self.collective(comm.kind, to_ranks, group)?;
        let per_node = self.cluster.devices_per_node().max(1);
        let ranks_here = per_node.div_ceil(group.stride().max(1)).clamp(1, group.ranks());
        let nodes = f64::from(group.ranks().div_ceil(ranks_here));
        if nodes <= 1.0 {
            return Ok(plain);
        }
        let between = self.collective(comm.kind, once(nodes), group)?;
        let inside = GroupPlacement::strided(ranks_here, group.stride());
        let within = self.collective(comm.kind, to_ranks, &inside)?;
        let time = between.time.max(within.time).min(plain.time);
        Ok(CommTime { time, relative_spread: between.relative_spread })
    }

    /// How much longer kernels take beside a communication of this length: its kernels take
    /// multiprocessors and memory bandwidth while they run.
    pub fn beside(&self, comm: Nanos, kernels: &[(Operation, Owner)]) -> f64 {
        let alone: Nanos = kernels.iter().map(|(operation, _)| self.kernel(operation).time).sum();
        if alone <= Nanos::ZERO {
            return 1.0;
        }
        let share = (comm.nanos() as f64 / alone.nanos() as f64).min(1.0);
        1.0 + BESIDE * share
    }

    /// The time of a list of work, one piece after the other.
    ///
    /// # Errors
    /// As [`collective`](Self::collective).
    pub fn pass(&self, work: &[Work], ranks: &Ranks) -> Result<PassTime> {
        let mut pass = PassTime::default();
        for piece in work {
            match piece {
                Work::Kernel { operation, owner, launches, times } => {
                    let count = f64::from(*times);
                    let known = self.kernel(operation);
                    pass.kernel(operation, *owner, known, count);
                    pass.launches += u64::from(*launches) * u64::from(*times);
                }
                Work::Comm(comm) => {
                    let known = self.comm(comm, ranks)?;
                    pass.parts[Part::from(comm.group)] += known.time;
                    pass.launches += 1;
                }
                Work::Beside { comm, kernels, pieces } => {
                    let known = self.comm(comm, ranks)?;
                    let slow = self.beside(known.time, kernels);
                    let mut computed = Nanos::ZERO;
                    for (operation, owner) in kernels {
                        let mut kernel = self.kernel(operation);
                        kernel.time = kernel.time.scale(slow);
                        pass.kernel(operation, *owner, kernel, 1.0);
                        computed += kernel.time;
                    }
                    pass.launches += 1 + kernels.len() as u64;
                    let exposed = exposed(known.time, computed, *pieces);
                    pass.parts[Part::from(comm.group)] += exposed;
                    pass.hidden += known.time - exposed;
                }
            }
        }
        Ok(pass)
    }
}

/// Slow-down of kernels that communication runs beside all the time: between 1.02 for products that
/// fill a device several times and 1.3 for memory-bound ones in public measurements.
const BESIDE: f64 = 0.1;

/// What of a communication cut into pieces remains beside kernels: the first piece, which nothing
/// can hide, and what is longer than the kernels.
pub(crate) fn exposed(comm: Nanos, kernels: Nanos, pieces: u32) -> Nanos {
    let pieces = f64::from(pieces.max(1));
    let first = if pieces > 1.0 { comm.scale(1.0 / pieces) } else { Nanos::ZERO };
    let rest = comm - first;
    let cover = if pieces > 1.0 { kernels.scale(1.0 - 1.0 / pieces) } else { kernels };
    first + (rest - cover).clamp_positive()
}

impl PassTime {
    fn kernel(&mut self, operation: &Operation, owner: Owner, known: KernelTime, count: f64) {
        let time = known.time.scale(count);
        self.parts[Part::from(owner)] += time;
        self.flops += operation.flops().get() * count;
        self.spread[owner as usize] += time.nanos() as f64 * known.relative_spread;
    }
}
