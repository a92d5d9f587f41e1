//! The shipped curves and where to look for a device's.

use std::sync::LazyLock;

use foretrain_hardware::{Catalogue, Device, parse_toml};
use serde::Deserialize;

use super::attention::AttentionCurve;
use super::class::Class;
use super::curve::{Around, Spread};
use super::gemm::GemmCurve;
use super::memory::{CurveKind, MemoryCurve};
use super::model::Basis;
use super::operation::Pass;
use super::relative::kinship;

const TEXT: &str = include_str!("../../data/kernels.toml");

/// Further error where the library, its version or the power limit are not the source's: products of
/// other people differ by about this much (the sets `kernels-*-other-source`).
const OTHER_PRODUCTS: f64 = 0.08;
/// The same of other kernels. What memory-bound kernels of other libraries differ by is more than
/// any interval of use could hold.
const OTHER_KERNELS: f64 = 0.06;

/// Further error of a backward pass that is a forward one times another device's ratio.
const BACKWARD_BY_RATIO: f64 = 0.15;

/// `data/kernels.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Book {
    gemm: Vec<Entry<Class, GemmCurve>>,
    attention: Vec<Entry<Pass, AttentionCurve>>,
    memory: Vec<Entry<CurveKind, MemoryCurve>>,
    best: Vec<Best>,
}

/// A curve of one device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry<K, C> {
    device: String,
    /// What it is the curve of.
    of: K,
    curve: C,
    spread: Spread,
    #[serde(default)]
    around: Around,
    fit: Fit,
}

/// What a curve was fitted to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fit {
    /// Rows fitted.
    pub(super) rows: u32,
    /// Rows of the same source that were not.
    pub(super) held_out: u32,
    /// Median absolute error on those, percent.
    pub(super) error_percent: f64,
    /// Table.
    pub(super) source: String,
}

/// The largest share of its peak that any product reaches on a device.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Best {
    device: String,
    of: Class,
    fraction: f64,
}

/// A curve for a device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found<C> {
    pub(super) curve: C,
    pub(super) from: Origin,
}

/// Whose curve it is and how sure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    pub(super) spread: Spread,
    pub(super) basis: Basis,
    pub(super) owner: &'static str,
    pub(super) fit: &'static Fit,
    /// Shapes of the user's own that it was corrected by.
    pub(super) corrected: Option<u32>,
}

impl Origin {
    /// As the origin of a curve that stands for another type or kind.
    pub(super) fn borrowed(self, further_error: f64) -> Self {
        Self { spread: self.spread.and(further_error), basis: Basis::Borrowed, ..self }
    }
}

/// Whether a device may use its own curves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    Used,
    LeftOut,
}

impl Book {
    /// The curves that ship.
    pub(super) fn shipped() -> &'static Self {
        // A defect of the shipped file is found by a test; a user meets the limits of the hardware.
        static BOOK: LazyLock<Book> = LazyLock::new(|| parse_toml(TEXT).unwrap_or_default());
        &BOOK
    }

    pub(super) fn gemm(
        &'static self,
        device: &Device,
        class: Class,
        own: Own,
    ) -> Option<Found<GemmCurve>> {
        let mut found = nearest(&self.gemm, class, device, own, OTHER_PRODUCTS)?;
        if found.from.owner != device.name {
            found.curve.efficiency *= self.best_ratio(device, found.from.owner, class);
            found.curve.efficiency = found.curve.efficiency.min(1.0);
        }
        Some(found)
    }

    /// A device without a backward curve has its forward one changed as a relative's is.
    pub(super) fn attention(
        &'static self,
        device: &Device,
        pass: Pass,
        own: Own,
    ) -> Option<Found<AttentionCurve>> {
        let forward = nearest(&self.attention, Pass::Forward, device, own, OTHER_KERNELS)?;
        if pass == Pass::Forward {
            return Some(forward);
        }
        let backward = nearest(&self.attention, Pass::Backward, device, own, OTHER_KERNELS)?;
        if backward.from.owner == forward.from.owner {
            return Some(backward);
        }
        let base = entry(&self.attention, Pass::Forward, backward.from.owner)?;
        let curve = forward.curve.backward_like(&base.curve, &backward.curve);
        Some(Found { curve, from: forward.from.borrowed(BACKWARD_BY_RATIO) })
    }

    pub(super) fn memory(
        &'static self,
        device: &Device,
        kind: CurveKind,
        own: Own,
    ) -> Option<Found<MemoryCurve>> {
        nearest(&self.memory, kind, device, own, OTHER_KERNELS)
    }

    /// What the source of a device's own curve measures around a product.
    pub(super) fn around_gemm(&self, device: &Device, class: Class) -> Around {
        around(&self.gemm, class, device)
    }

    /// The same around attention.
    pub(super) fn around_attention(&self, device: &Device, pass: Pass) -> Around {
        around(&self.attention, pass, device)
    }

    /// The same around memory-bound kernels.
    pub(super) fn around_memory(&self, device: &Device, kind: CurveKind) -> Around {
        around(&self.memory, kind, device)
    }

    /// How much larger a share of its peak a device reaches at best than another, as far as both
    /// are known: a lower power limit holds the clock below the one that the peak is stated at.
    fn best_ratio(&self, device: &Device, owner: &str, class: Class) -> f64 {
        let best = |name: &str, class| {
            let mut known = self.best.iter().filter(|best| best.device == name);
            known.find(|best| best.of == class).map(|best| best.fraction)
        };
        let ratio = |class| Some(best(&device.name, class)? / best(owner, class)?);
        ratio(class).or_else(|| ratio(Class::Half)).unwrap_or(1.0)
    }
}

fn entry<'a, K: Copy + PartialEq, C>(
    entries: &'a [Entry<K, C>],
    of: K,
    device: &str,
) -> Option<&'a Entry<K, C>> {
    entries.iter().find(|entry| entry.of == of && entry.device == device)
}

fn around<K: Copy + PartialEq, C>(entries: &[Entry<K, C>], of: K, device: &Device) -> Around {
    entry(entries, of, &device.name).map_or_else(Around::default, |entry| entry.around)
}

/// The device's own curve or its nearest relative's, with a further error on top of its fit's.
fn nearest<K: Copy + PartialEq, C: Copy>(
    entries: &'static [Entry<K, C>],
    of: K,
    device: &Device,
    own: Own,
    further_error: f64,
) -> Option<Found<C>> {
    let found = |entry: &'static Entry<K, C>, borrowed, basis| Found {
        curve: entry.curve,
        from: Origin {
            spread: entry.spread.and(further_error).and(borrowed),
            basis,
            owner: &entry.device,
            fit: &entry.fit,
            corrected: None,
        },
    };
    if let (Own::Used, Some(entry)) = (own, entry(entries, of, &device.name)) {
        return Some(found(entry, 0.0, Basis::Fitted));
    }
    let catalogue = Catalogue::builtin();
    let others = entries.iter().filter(|entry| entry.of == of && entry.device != device.name);
    let kin = others
        .filter_map(|entry| Some((entry, kinship(device, catalogue.device(&entry.device).ok()?))));
    let (entry, kin) = kin.min_by(|a, b| a.1.distance.total_cmp(&b.1.distance))?;
    Some(found(entry, kin.further_error, Basis::Borrowed))
}

/// Whether a shape of a source table was held out of the fits: one in five, by a hash of its sizes
/// in the order of [`super::Gemm`]'s or [`super::Attention`]'s fields.
pub fn is_held_out(sizes: &[u64]) -> bool {
    let mix = |hash: u64, size: &u64| hash.wrapping_mul(1_000_003).wrapping_add(*size);
    let mut hash = sizes.iter().fold(0, mix);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash.is_multiple_of(5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_reads_and_names_devices_of_the_catalogue() {
        let book: Book = parse_toml(TEXT).expect("reads");
        let names = book.gemm.iter().map(|entry| &entry.device);
        let names = names.chain(book.attention.iter().map(|entry| &entry.device));
        let names = names.chain(book.memory.iter().map(|entry| &entry.device));
        for name in names.chain(book.best.iter().map(|best| &best.device)) {
            assert!(Catalogue::builtin().device(name).is_ok(), "{name}");
        }
    }
}
