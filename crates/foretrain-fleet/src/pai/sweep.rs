//! What other hardware, or other software, would buy each class.

use foretrain_core::{InputError, Ledger, Result};

use super::characterise::{Method, Rows, Timed};
use super::hardware::Resource;
use super::histogram::Sizes;
use super::presets::CASES;
use super::step::{Overlap, Step};
use crate::jobs::{Class, Job};

/// Resources at other rates than the base, or other software.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// For people: `Ethernet 100 Gbit/s`.
    pub name: String,
    /// How many times as fast each resource is, in the order of [`Resource::ALL`].
    pub times: [f64; 5],
}

impl Change {
    /// One resource so many times as fast.
    ///
    /// # Errors
    /// Unless the factor is between a thousandth and a thousand.
    pub fn of(name: String, resource: Resource, times: f64) -> Result<Self> {
        if !(1e-3..=1e3).contains(&times) {
            return Err(InputError::new(format!(
                "{name}: expected a rate from a thousandth to a thousand times the base"
            )));
        }
        let mut all = [1.0; 5];
        all[resource.index()] = times;
        Ok(Self { name, times: all })
    }

    /// Both at once.
    #[must_use]
    pub fn and(&self, other: &Change) -> Self {
        let mut times = self.times;
        for (own, more) in times.iter_mut().zip(other.times) {
            *own *= more;
        }
        Self { name: format!("{} + {}", self.name, other.name), times }
    }
}

/// The rates that the study tried, as recalled: Ethernet in Gbit/s, PCIe in GB/s, TFLOPS and TB/s.
/// NVLink, which it left alone, is tried at half and three times its rate.
pub fn usual_grid(method: &Method) -> Vec<Change> {
    let hardware = &method.hardware;
    let grid: [(Resource, &str, f64, &[f64]); 5] = [
        (Resource::Ethernet, "Gbit/s", 0.125e9, &[10.0, 25.0, 100.0]),
        (Resource::Pcie, "GB/s", 1e9, &[10.0, 50.0]),
        (Resource::NvLink, "GB/s", 1e9, &[25.0, 150.0]),
        (Resource::Flops, "TFLOPS", 1e12, &[8.0, 16.0, 32.0, 64.0]),
        (Resource::Memory, "TB/s", 1e12, &[1.0, 2.0, 4.0]),
    ];
    let changes = grid.into_iter().flat_map(|(resource, unit, factor, rates)| {
        let base = hardware.peak(resource);
        let of = move |rate: &f64| {
            let mut times = [1.0; 5];
            times[resource.index()] = rate * factor / base;
            Change { name: format!("{} {rate} {unit}", resource.name()), times }
        };
        rates.iter().map(of)
    });
    // The base itself changes nothing.
    changes.filter(|change| change.times.iter().any(|times| (times - 1.0).abs() > 1e-9)).collect()
}

/// One change in one class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effect {
    /// Jobs.
    pub jobs: u64,
    /// Mean speed-up of a job's step.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// A tenth of the jobs is below, and a tenth above.
    pub tenths: [f64; 2],
}

/// Changes in the jobs of a class, or in all.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassEffects {
    /// Whose jobs: a class, a single model, or `all`.
    pub of: String,
    /// The class; all jobs without one.
    pub class: Option<Class>,
    /// By change.
    pub effects: Vec<Effect>,
    /// Mean speed-up if one resource alone were twice as fast, in the order of [`Resource::ALL`].
    pub doubled: [f64; 5],
}

impl ClassEffects {
    /// The resource that is worth most to double.
    pub fn most_sensitive(&self) -> Resource {
        let most = |a: &Resource, b: &Resource| {
            self.doubled[a.index()].total_cmp(&self.doubled[b.index()])
        };
        Resource::ALL.into_iter().max_by(most).unwrap_or(Resource::Memory)
    }
}

/// Changes in a table.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// How jobs were timed.
    pub method: Method,
    /// Whether parts of steps were taken to hide each other.
    pub overlap: Overlap,
    /// Rows it rests on.
    pub rows: Rows,
    /// The changes.
    pub changes: Vec<Change>,
    /// All jobs first, then by class.
    pub classes: Vec<ClassEffects>,
}

/// The six models of the study one by one.
pub fn of_cases(
    method: Method,
    overlap: Overlap,
    changes: &[Change],
    ledger: &mut Ledger,
) -> Sweep {
    let mut all = Sweeper::new(method, overlap, changes.to_vec()).finish(&mut Ledger::new());
    for case in &CASES {
        let mut one = Sweeper::new(method, overlap, changes.to_vec());
        one.add(&case.job());
        let found = one.finish(ledger);
        all.rows.timed.used += found.rows.timed.used;
        all.rows.timed.total += found.rows.timed.total;
        let own = found.classes.into_iter().filter(|effects| effects.class.is_some());
        all.classes.extend(own.map(|one| ClassEffects { of: case.name.to_owned(), ..one }));
    }
    all
}

/// Takes jobs in one after the other.
#[derive(Clone, Debug)]
pub struct Sweeper {
    timed: Timed,
    overlap: Overlap,
    changes: Vec<Change>,
    /// By class (all jobs at the end) and change.
    sums: Vec<Vec<Sizes>>,
    doubled: Vec<[f64; 5]>,
}

impl Sweeper {
    /// Without any job yet.
    pub fn new(method: Method, overlap: Overlap, changes: Vec<Change>) -> Self {
        let rows = Class::ALL.len() + 1;
        let sums = vec![vec![Sizes::default(); changes.len()]; rows];
        let doubled = vec![[0.0; 5]; rows];
        Self { timed: Timed::new(method), overlap, changes, sums, doubled }
    }

    /// Takes in a row.
    pub fn add(&mut self, job: &Job) {
        let Some(work) = self.timed.work(job) else { return };
        let step = Step::of(&work, &self.timed.method.hardware);
        let base = step.total(self.overlap).secs_f64();
        let rows = [work.class.index(), Class::ALL.len()];
        for (index, change) in self.changes.iter().enumerate() {
            let speed_up = base / step.faster(&change.times).total(self.overlap).secs_f64();
            for row in rows {
                self.sums[row][index].add(speed_up);
            }
        }
        for resource in Resource::ALL {
            let mut times = [1.0; 5];
            times[resource.index()] = 2.0;
            let speed_up = base / step.faster(&times).total(self.overlap).secs_f64();
            for row in rows {
                self.doubled[row][resource.index()] += speed_up;
            }
        }
    }

    /// The answer; what could not be used goes to the ledger.
    pub fn finish(self, ledger: &mut Ledger) -> Sweep {
        self.timed.record(ledger);
        let jobs = |row: usize| self.sums[row].first().map_or(0, Sizes::count);
        let order = std::iter::once((None, Class::ALL.len()))
            .chain(Class::ALL.into_iter().map(|class| (Some(class), class.index())));
        let classes = order.filter(|(_, row)| jobs(*row) > 0).map(|(class, row)| ClassEffects {
            of: class.map_or("all", Class::name).to_owned(),
            class,
            effects: self.sums[row].iter().map(effect).collect(),
            doubled: self.doubled[row].map(|sum| sum / jobs(row) as f64),
        });
        Sweep {
            method: self.timed.method,
            overlap: self.overlap,
            rows: self.timed.rows(),
            classes: classes.collect(),
            changes: self.changes,
        }
    }
}

fn effect(sizes: &Sizes) -> Effect {
    Effect {
        jobs: sizes.count(),
        mean: sizes.mean(),
        median: sizes.quantile(0.5),
        tenths: [sizes.quantile(0.1), sizes.quantile(0.9)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_changes_at_once_multiply() {
        let fast = Change::of("a".into(), Resource::Flops, 2.0).unwrap();
        let both = fast.and(&Change::of("b".into(), Resource::Memory, 4.0).unwrap());
        assert_eq!((both.times, both.name.as_str()), ([1.0, 1.0, 1.0, 2.0, 4.0], "a + b"));
        assert!(Change::of("c".into(), Resource::Flops, 0.0).is_err());
    }

    #[test]
    fn the_base_is_not_in_the_grid() {
        let names: Vec<String> =
            usual_grid(&Method::PAI_2019).into_iter().map(|change| change.name).collect();
        assert!(names.contains(&"Ethernet 100 Gbit/s".to_owned()), "{names:?}");
        assert!(!names.contains(&"Ethernet 25 Gbit/s".to_owned()), "{names:?}");
        assert_eq!(names.len(), 11);
    }
}
