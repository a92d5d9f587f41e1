//! Jobs in another class than their own: may they run there, and how much faster?

use foretrain_core::diagnostics::Coverage;
use foretrain_core::{Bytes, Ledger};

use super::characterise::{Method, Rows, Timed};
use super::hardware::Hardware;
use super::histogram::Sizes;
use super::presets::CASES;
use super::step::{Overlap, Step};
use super::work::Work;
use crate::jobs::{Class, Job};

/// Why a job cannot run in another class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Infeasible {
    /// Its weights do not fit a GPU.
    Memory,
    /// Its weights are not known.
    WeightsUnknown,
    /// It has one replica, and the class is of several.
    OneReplica,
    /// How much of its embeddings a step touches is not known.
    TouchedUnknown,
}

impl Infeasible {
    /// All of them.
    pub const ALL: [Infeasible; 4] =
        [Self::Memory, Self::WeightsUnknown, Self::OneReplica, Self::TouchedUnknown];

    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "weights do not fit a GPU",
            Self::WeightsUnknown => "weights not in the table",
            Self::OneReplica => "one replica only",
            Self::TouchedUnknown => "touched embeddings not in the table",
        }
    }
}

/// A job moved to another class.
///
/// Replicas of a class of one server are at most as many as it has GPUs. Weights must fit a GPU
/// where they are kept on it; PEARL keeps a part of the embeddings on each. Traffic keeps its volume
/// and changes its medium, but for PEARL, which replicates dense weights (ring all-reduce) and
/// exchanges the touched rows of embeddings (gather and scatter).
///
/// # Errors
/// If it cannot run there.
pub fn projected(work: &Work, to: Class, hardware: &Hardware) -> Result<Work, Infeasible> {
    let cnodes = match to {
        Class::OneWorkerOneGpu => 1,
        _ if to.within_a_server() => work.cnodes.min(hardware.gpus_per_server),
        _ => work.cnodes,
    };
    if cnodes < to.fewest() {
        return Err(Infeasible::OneReplica);
    }
    let on_gpu = match to {
        // Parameters are in the memory of hosts.
        Class::OneWorkerManyGpus | Class::PsWorker => None,
        Class::Pearl => Some(u64::from(cnodes)),
        _ => Some(1),
    };
    if let Some(parts) = on_gpu {
        let (Some(dense), Some(embedding)) = (work.dense_weights, work.embedding_weights) else {
            return Err(Infeasible::WeightsUnknown);
        };
        if dense + Bytes::new(embedding.get().div_ceil(parts)) > hardware.gpu_memory {
            return Err(Infeasible::Memory);
        }
    }
    let traffic = match to {
        Class::OneWorkerOneGpu => Bytes::ZERO,
        Class::Pearl if work.class != Class::Pearl => pearl_traffic(work, cnodes)?,
        _ => work.traffic,
    };
    Ok(Work { class: to, cnodes, traffic, ..*work })
}

/// Bytes that one replica sends and receives under PEARL.
fn pearl_traffic(work: &Work, cnodes: u32) -> Result<Bytes, Infeasible> {
    let embedding = work.embedding_weights.unwrap_or(Bytes::ZERO);
    let touched = match work.embedding_touched {
        Some(touched) => touched,
        None if embedding == Bytes::ZERO => Bytes::ZERO,
        None => return Err(Infeasible::TouchedUnknown),
    };
    let dense = work.dense_weights.unwrap_or(Bytes::ZERO);
    let others = f64::from(cnodes - 1) / f64::from(cnodes);
    let sent = 2.0 * others * dense.as_f64() + 2.0 * others * touched.as_f64();
    Ok(Bytes::from_f64(2.0 * sent))
}

/// How much faster a job is in another class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpeedUp {
    /// Of one replica: old step over new step.
    pub single: f64,
    /// Of the whole job, by the samples of all its replicas.
    pub overall: f64,
}

/// Of a job that can run there.
pub fn speed_up(work: &Work, moved: &Work, hardware: &Hardware, overlap: Overlap) -> SpeedUp {
    let time = |work: &Work| Step::of(work, hardware).total(overlap).secs_f64();
    let single = time(work) / time(moved);
    SpeedUp { single, overall: single * f64::from(moved.cnodes) / f64::from(work.cnodes) }
}

/// Jobs of one class in another.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// Whose jobs: a class, or a single model.
    pub of: String,
    /// Their class.
    pub from: Class,
    /// The other.
    pub to: Class,
    /// Jobs that can run there, of all of the class.
    pub jobs: Coverage,
    /// Why the others cannot, in the order of [`Infeasible::ALL`].
    pub infeasible: [u64; Infeasible::ALL.len()],
    /// Speed-ups of one replica of those that can.
    pub single: Gains,
    /// Speed-ups of whole jobs.
    pub overall: Gains,
}

/// Speed-ups of jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gains {
    /// Jobs that get faster.
    pub jobs: u64,
    /// Mean speed-up of those that can run there.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// A tenth of the jobs is below, and a tenth above.
    pub tenths: [f64; 2],
}

/// Projections of a table.
#[derive(Clone, Debug)]
pub struct Projections {
    /// How jobs were timed.
    pub method: Method,
    /// Whether parts of steps were taken to hide each other.
    pub overlap: Overlap,
    /// Rows it rests on.
    pub rows: Rows,
    /// By class, for classes that have jobs.
    pub projections: Vec<Projection>,
}

impl Projections {
    /// Whether any job can run in another class.
    pub fn can_any_run(&self) -> bool {
        self.projections.iter().any(|projection| projection.jobs.used > 0)
    }
}

/// The six models of the study one by one.
pub fn of_cases(
    method: Method,
    overlap: Overlap,
    to: &[Class],
    ledger: &mut Ledger,
) -> Projections {
    let mut all = Projector::new(method, overlap, to.to_vec()).finish(&mut Ledger::new());
    for case in &CASES {
        let mut one = Projector::new(method, overlap, to.to_vec());
        one.add(&case.job());
        let found = one.finish(ledger);
        all.rows.timed.used += found.rows.timed.used;
        all.rows.timed.total += found.rows.timed.total;
        let named = found.projections.into_iter();
        all.projections.extend(named.map(|one| Projection { of: case.name.to_owned(), ..one }));
    }
    all
}

/// Takes jobs in one after the other.
#[derive(Clone, Debug)]
pub struct Projector {
    timed: Timed,
    overlap: Overlap,
    to: Vec<Class>,
    sums: Vec<Sums>,
}

#[derive(Clone, Debug, Default)]
struct Sums {
    jobs: u64,
    infeasible: [u64; Infeasible::ALL.len()],
    single: Sizes,
    overall: Sizes,
    single_gains: u64,
    overall_gains: u64,
}

impl Projector {
    /// Without any job yet.
    pub fn new(method: Method, overlap: Overlap, to: Vec<Class>) -> Self {
        let sums = vec![Sums::default(); Class::ALL.len() * to.len()];
        Self { timed: Timed::new(method), overlap, to, sums }
    }

    /// Takes in a row.
    pub fn add(&mut self, job: &Job) {
        let Some(work) = self.timed.work(job) else { return };
        let hardware = &self.timed.method.hardware;
        for (index, &to) in self.to.iter().enumerate() {
            if to == work.class {
                continue;
            }
            let sums = &mut self.sums[work.class.index() * self.to.len() + index];
            sums.jobs += 1;
            match projected(&work, to, hardware) {
                Ok(moved) => {
                    let speed_up = speed_up(&work, &moved, hardware, self.overlap);
                    sums.single.add(speed_up.single);
                    sums.overall.add(speed_up.overall);
                    sums.single_gains += u64::from(speed_up.single > 1.0);
                    sums.overall_gains += u64::from(speed_up.overall > 1.0);
                }
                Err(reason) => sums.infeasible[reason as usize] += 1,
            }
        }
    }

    /// The answer; what could not be used goes to the ledger.
    pub fn finish(self, ledger: &mut Ledger) -> Projections {
        self.timed.record(ledger);
        let mut projections = Vec::new();
        for from in Class::ALL {
            for (index, &to) in self.to.iter().enumerate() {
                let sums = &self.sums[from.index() * self.to.len() + index];
                if sums.jobs > 0 {
                    projections.push(sums.finish(from, to));
                }
            }
        }
        Projections {
            method: self.timed.method,
            overlap: self.overlap,
            rows: self.timed.rows(),
            projections,
        }
    }
}

impl Sums {
    fn finish(&self, from: Class, to: Class) -> Projection {
        let gains = |sizes: &Sizes, jobs| Gains {
            jobs,
            mean: sizes.mean(),
            median: sizes.quantile(0.5),
            tenths: [sizes.quantile(0.1), sizes.quantile(0.9)],
        };
        Projection {
            of: from.name().to_owned(),
            from,
            to,
            jobs: Coverage { used: self.single.count(), total: self.jobs },
            infeasible: self.infeasible,
            single: gains(&self.single, self.single_gains),
            overall: gains(&self.overall, self.overall_gains),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pai::presets::Case;

    fn of(name: &str) -> Work {
        Case::named(name).unwrap().work
    }

    #[test]
    fn big_embeddings_fit_no_gpu_but_in_parts() {
        let hardware = Hardware::pai_2019();
        let gcn = of("GCN");
        assert_eq!(projected(&gcn, Class::AllReduceLocal, &hardware), Err(Infeasible::Memory));
        assert!(projected(&gcn, Class::PsWorker, &hardware).is_ok());
        let interests = of("Multi-Interests");
        let error = projected(&interests, Class::Pearl, &hardware);
        assert_eq!(error, Err(Infeasible::Memory), "239 GB are 30 GB on each of 8");
        let large = Hardware { gpu_memory: Bytes::new(40_000_000_000), ..hardware };
        let error = projected(&interests, Class::Pearl, &large);
        assert_eq!(error, Err(Infeasible::TouchedUnknown));
        let touched = Work { embedding_touched: Some(Bytes::new(100_000_000)), ..interests };
        let moved = projected(&touched, Class::Pearl, &large).unwrap();
        // 2 directions * 2 * 7/8 * (1.19 MB + 100 MB).
        assert_eq!(moved.traffic, Bytes::new(354_165_000));
    }

    #[test]
    fn a_server_holds_as_many_replicas_as_gpus() {
        let hardware = Hardware { pcie_sharing: 4, ..Hardware::pai_2019() };
        let many = Work { class: Class::PsWorker, cnodes: 32, ..of("ResNet50") };
        let moved = projected(&many, Class::AllReduceLocal, &hardware).unwrap();
        assert_eq!(moved.cnodes, 8);
        let speed_up = speed_up(&many, &moved, &hardware, Overlap::None);
        // 467.80 ms on servers; 263.80 ms on one, and three times 5.43 ms more of shared PCIe.
        assert!((speed_up.single - 467.80 / (263.80 + 3.0 * 5.43)).abs() < 1e-3);
        assert!((speed_up.overall - speed_up.single / 4.0).abs() < 1e-12);
        let one = Work { cnodes: 1, ..many };
        let error = projected(&one, Class::AllReduceLocal, &hardware);
        assert_eq!(error, Err(Infeasible::OneReplica));
    }
}
