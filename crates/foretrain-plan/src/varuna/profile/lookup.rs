//! Entries of a profile, and how gaps between them are filled where that is asked for.

use std::collections::BTreeMap;
use std::fmt;

use foretrain_core::units::Quantity;
use foretrain_core::{Bytes, InputError, Nanos, Result};

use super::gaps::{Filled, Gaps};
use super::{Costs, CutPoint, Line, Profile, Reach};

impl CutPoint {
    /// Costs for a micro-batch size.
    ///
    /// # Errors
    /// If that size was not measured, and gaps are not to be filled or it is outside what was.
    pub fn costs(&self, micro_batch: u32, gaps: Gaps, filled: &mut Filled) -> Result<Costs> {
        if let Some(costs) = self.costs.get(&micro_batch) {
            return Ok(*costs);
        }
        let around = neighbours(&self.costs, micro_batch);
        if let (Gaps::Interpolate, Some([low, high])) = (gaps, around) {
            filled.note("costs", || {
                format!(
                    "micro-batch {micro_batch} of cut-point {:?} lies between {} and {}",
                    self.name, low.0, high.0
                )
            });
            let share = share(low.0.into(), high.0.into(), micro_batch.into());
            return Ok(low.1.between(high.1, share));
        }
        let known: Vec<String> = self.costs.keys().map(ToString::to_string).collect();
        Err(InputError::new(format!(
            "cut-point {:?} was not measured with micro-batch {micro_batch}, only with {}",
            self.name,
            listed(&known)
        ))
        .hint(hint(gaps, around.is_some())))
    }
}

impl Costs {
    fn between(&self, other: &Self, share: f64) -> Self {
        fn optional<T: Quantity>(a: Option<T>, b: Option<T>, share: f64) -> Option<T> {
            a.zip(b).map(|(a, b)| mixed(a, b, share))
        }
        Self {
            forward: mixed(self.forward, other.forward, share),
            backward: mixed(self.backward, other.backward, share),
            copy: optional(self.copy, other.copy, share),
            max_memory: optional(self.max_memory, other.max_memory, share),
            activation: optional(self.activation, other.activation, share),
            saved: optional(self.saved, other.saved, share),
        }
    }
}

impl Profile {
    /// The time of a message.
    ///
    /// # Errors
    /// If its size was not measured, no line is given, and the gap is not to be filled.
    pub fn message(
        &self,
        bytes: Bytes,
        reach: Reach,
        gaps: Gaps,
        filled: &mut Filled,
    ) -> Result<Nanos> {
        let name = reach.as_str();
        let table = &self.messages[reach as usize];
        if let Some(time) = table.get(&bytes) {
            return Ok(*time);
        }
        if let Some(line) = self.network.messages[reach as usize] {
            filled.note(kind(reach), || format!("{name} of {bytes} from the network's line"));
            return Ok(line.latency + bytes / line.bandwidth);
        }
        let around = neighbours(table, bytes);
        if let (Gaps::Interpolate, Some([low, high])) = (gaps, around) {
            filled.note(kind(reach), || {
                format!("{name} of {bytes} lies between {} and {}", low.0, high.0)
            });
            let share = share(low.0.as_f64(), high.0.as_f64(), bytes.as_f64());
            return Ok(mixed(*low.1, *high.1, share));
        }
        let known: Vec<String> = table.keys().map(ToString::to_string).collect();
        let size = exact(bytes);
        Err(InputError::new(format!(
            "the profile lacks {name} of a message of {size}, it has {}",
            listed(&known)
        ))
        .hint(format!(
            "give network.{name}, measure that size, or {}",
            fill(gaps, around.is_some())
        )))
    }

    /// The time of the all-reduce of one of `stages` stages over `ring` replicas.
    ///
    /// # Errors
    /// If it was not measured, no line is given, and the gap is not to be filled.
    pub fn all_reduce(
        &self,
        stages: u32,
        ring: u32,
        gaps: Gaps,
        filled: &mut Filled,
    ) -> Result<Nanos> {
        if ring < 2 {
            return Ok(Nanos::ZERO);
        }
        let table = self.all_reduce.get(&stages);
        if let Some(time) = table.and_then(|rings| rings.get(&ring)) {
            return Ok(*time);
        }
        let what = || format!("the all-reduce of {stages} stages in rings of {ring}");
        if let (Some(line), Some(gradients)) = (self.network.ring, self.network.gradients) {
            filled.note("all_reduce", || format!("{} from the network's line", what()));
            return Ok(ring_time(line, gradients, stages, ring));
        }
        let found = match gaps {
            Gaps::Refuse => None,
            Gaps::Interpolate => self.between_rings(stages, ring),
            Gaps::Varuna => table.and_then(|rings| varuna_rings(rings, ring)),
        };
        if let Some((time, how)) = found {
            filled.note("all_reduce", || format!("{} {how}", what()));
            return Ok(time);
        }
        let known = match table {
            Some(rings) => {
                let rings: Vec<String> = rings.keys().map(ToString::to_string).collect();
                format!("of {stages} stages only rings of {}", listed(&rings))
            }
            None => {
                let stages: Vec<String> = self.all_reduce.keys().map(ToString::to_string).collect();
                format!("only those of {} stages", listed(&stages))
            }
        };
        Err(InputError::new(format!("the profile lacks {}; it has {known}", what())).hint(
            "give network.all_reduce and network.gradients, measure it, or fill gaps (interpolate, varuna)",
        ))
    }

    /// On a line between the rings measured around this one; a line between numbers of stages goes
    /// with what a stage holds, one part in so many.
    fn between_rings(&self, stages: u32, ring: u32) -> Option<(Nanos, String)> {
        let on_rings = |stages: u32| -> Option<Nanos> {
            let rings = self.all_reduce.get(&stages)?;
            if let Some(time) = rings.get(&ring) {
                return Some(*time);
            }
            let [low, high] = neighbours(rings, ring)?;
            Some(mixed(*low.1, *high.1, share(low.0.into(), high.0.into(), ring.into())))
        };
        if let Some(time) = on_rings(stages) {
            return Some((time, "lies between rings that were measured".into()));
        }
        let with_ring: BTreeMap<u32, Nanos> = self
            .all_reduce
            .keys()
            .filter_map(|stages| Some((*stages, on_rings(*stages)?)))
            .collect();
        let [low, high] = neighbours(&with_ring, stages)?;
        let part = |stages: u32| 1.0 / f64::from(stages);
        let share = share(part(low.0), part(high.0), part(stages));
        let how = format!("lies between {} and {} stages", low.0, high.0);
        Some((mixed(*low.1, *high.1, share), how))
    }
}

const fn kind(reach: Reach) -> &'static str {
    match reach {
        Reach::Near => "send",
        Reach::Far => "long_send",
    }
}

/// Reduce-scatter and all-gather: each passes every part but one on, hop by hop.
fn ring_time(line: Line, gradients: Bytes, stages: u32, ring: u32) -> Nanos {
    let hops = 2.0 * f64::from(ring - 1);
    let part = gradients.as_f64() / f64::from(stages) / f64::from(ring);
    (line.latency + Bytes::from_f64(part) / line.bandwidth).scale(hops)
}

fn varuna_rings(rings: &BTreeMap<u32, Nanos>, ring: u32) -> Option<(Nanos, String)> {
    let power = 1 << ring.ilog2();
    if let Some(time) = rings.get(&power) {
        return Some((*time, format!("taken to be that of {power}, as Varuna does")));
    }
    let two = rings.get(&2)?;
    let how = "taken to be that of 2 times the logarithm of the ring, as Varuna does";
    Some((two.scale(f64::from(ring).log2()), how.into()))
}

/// The entries next to a key that is not there, if there are any on both sides.
fn neighbours<K: Ord + Copy, V>(table: &BTreeMap<K, V>, key: K) -> Option<[(K, &V); 2]> {
    let low = table.range(..key).next_back()?;
    let high = table.range(key..).next()?;
    Some([(*low.0, low.1), (*high.0, high.1)])
}

fn share(low: f64, high: f64, at: f64) -> f64 {
    (at - low) / (high - low)
}

fn mixed<T: Quantity>(a: T, b: T, share: f64) -> T {
    T::from_base(a.to_base() + (b.to_base() - a.to_base()) * share)
}

fn listed(items: &[String]) -> String {
    const MOST: usize = 8;
    match items {
        [] => "none".into(),
        _ if items.len() > MOST => {
            format!("{} and {} more", items[..MOST].join(", "), items.len() - MOST)
        }
        _ => items.join(", "),
    }
}

/// A size as it has to be written.
fn exact(bytes: Bytes) -> impl fmt::Display {
    format!("{} bytes", bytes.get())
}

fn fill(gaps: Gaps, is_between: bool) -> &'static str {
    match (gaps, is_between) {
        (Gaps::Interpolate, false) => {
            "measure around it: nothing is filled outside what was measured"
        }
        (_, true) => "interpolate between those around it",
        (_, false) => "measure smaller and larger ones and interpolate",
    }
}

fn hint(gaps: Gaps, is_between: bool) -> String {
    format!("measure it, or {}", fill(gaps, is_between))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile() -> Profile {
        let ms = Nanos::from_millis;
        Profile {
            messages: [
                BTreeMap::from([(Bytes::new(100), ms(1)), (Bytes::new(300), ms(3))]),
                BTreeMap::new(),
            ],
            all_reduce: BTreeMap::from([
                (1, BTreeMap::from([(2, ms(100)), (4, ms(140))])),
                (4, BTreeMap::from([(2, ms(40)), (4, ms(60))])),
            ]),
            ..Profile::default()
        }
    }

    #[test]
    fn missing_entries_are_named_and_never_nothing() {
        let (profile, filled) = (profile(), &mut Filled::default());
        let error = profile.message(Bytes::new(200), Reach::Near, Gaps::Refuse, filled);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("send of a message of 200 bytes"), "{error}");
        let error = profile.message(Bytes::new(200), Reach::Far, Gaps::Interpolate, filled);
        assert!(error.unwrap_err().to_string().contains("long_send"), "no far message at all");
        let error = profile.all_reduce(2, 3, Gaps::Refuse, filled).unwrap_err().to_string();
        assert!(error.contains("2 stages in rings of 3"), "{error}");
        assert!(profile.all_reduce(1, 8, Gaps::Interpolate, filled).is_err(), "outside");
        assert_eq!(filled.notes.len(), 0);
    }

    #[test]
    fn gaps_are_filled_on_lines_and_said() {
        let (profile, mut filled) = (profile(), Filled::default());
        let time = profile.message(Bytes::new(200), Reach::Near, Gaps::Interpolate, &mut filled);
        assert_eq!(time, Ok(Nanos::from_millis(2)));
        let time = profile.all_reduce(1, 3, Gaps::Interpolate, &mut filled);
        assert_eq!(time, Ok(Nanos::from_millis(120)));
        // Half as much per stage is two thirds of the way from a whole to a quarter.
        let time = profile.all_reduce(2, 2, Gaps::Interpolate, &mut filled);
        assert_eq!(time, Ok(Nanos::from_millis(60)));
        assert_eq!(filled.notes.keys().copied().collect::<Vec<_>>(), ["all_reduce", "send"]);
        let time = |ring| profile.all_reduce(4, ring, Gaps::Varuna, &mut Filled::default());
        assert_eq!(time(7), Ok(Nanos::from_millis(60)));
        assert_eq!(time(8), Ok(Nanos::from_millis(120)));
        assert_eq!(time(1), Ok(Nanos::ZERO), "a single replica reduces nothing");
    }

    #[test]
    fn lines_of_the_network_stand_in_for_tables() {
        let line = Line {
            latency: Nanos::from_micros(10),
            bandwidth: foretrain_core::Bandwidth::from_gb_per_sec(1.0),
        };
        let network = super::super::Network {
            messages: [Some(line); 2],
            ring: Some(line),
            gradients: Some(Bytes::new(8_000_000)),
        };
        let profile = Profile { network, ..Profile::default() };
        let mut filled = Filled::default();
        let time = profile.message(Bytes::new(1_000_000), Reach::Far, Gaps::Refuse, &mut filled);
        assert_eq!(time, Ok(Nanos::from_micros(1_010)));
        // 4 MB per stage: six hops of 1 MB.
        let time = profile.all_reduce(2, 4, Gaps::Refuse, &mut filled);
        assert_eq!(time, Ok(Nanos::from_micros(6 * 1_010)));
    }
}
