//! From cells to a row's fields.

use foretrain_core::{Bytes, Flops, Nanos};

use super::bind::Binding;
use super::fault::{Fault, Faults};
use super::features::{Class, Medium, TrafficCounts};
use super::field::Field;
use super::instant::BELIEVED;
use super::job::{Job, Status};
use super::places::{self, Wrong};
use super::schema::philly;
use super::{span, value};

/// More GPUs than any job has.
pub(super) const MOST_GPUS: f64 = 1e6;
/// The first date in words that a table of jobs can hold, in nanoseconds since 1970: 1971.
const FIRST_DATE: i64 = 31_536_000_000_000_000;
/// A number far above all others of its column is no time if it is longer than this: 30 days.
const LONE: Nanos = Nanos::from_millis(30 * 86_400_000);

/// Reads cells, and counts what is wrong with them.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    pub(super) faults: Faults,
    /// Dates with a zone, and without.
    pub(super) zoned: u64,
    pub(super) unzoned: u64,
    /// Whether dates are taken by the clock of whoever wrote them, not in UTC.
    pub(super) as_written: bool,
}

impl Decoder {
    pub(super) fn cell(&mut self, binding: &Binding, cell: &[u8], job: &mut Job) {
        let row = job.row;
        match binding.field {
            Field::Id => self.text(cell, &mut job.id, row),
            Field::Alias => self.text(cell, &mut job.alias, row),
            Field::Part => self.text(cell, &mut job.part, row),
            Field::GpuKind => self.text(cell, &mut job.gpu_kind, row),
            Field::User => self.text(cell, &mut job.user, row),
            Field::Queue => self.text(cell, &mut job.queue, row),
            Field::Model => self.text(cell, &mut job.model, row),
            Field::Submit => job.submit = self.instant(binding, cell, row),
            Field::Start => job.start = self.instant(binding, cell, row),
            Field::End => job.end = self.instant(binding, cell, row),
            Field::Duration => job.duration = self.span(binding, cell, row),
            Field::Wait => job.wait = self.span(binding, cell, row),
            Field::Turnaround => job.turnaround = self.span(binding, cell, row),
            Field::StepTime => job.step_time = self.span(binding, cell, row),
            Field::InputTime => job.stages[0] = self.span(binding, cell, row),
            Field::ComputeTime => job.stages[1] = self.span(binding, cell, row),
            Field::NetworkTime => job.stages[2] = self.span(binding, cell, row),
            Field::GpuTime => job.gpu_time = self.span(binding, cell, row),
            Field::Nodes => job.nodes = self.count(binding, cell, row),
            Field::CNodes => job.features.cnodes = self.count(binding, cell, row),
            Field::Batch => job.batch = self.amount(binding, cell, row),
            Field::Steps => job.steps = self.amount(binding, cell, row),
            Field::Priority => job.priority = self.number(binding, cell, row),
            Field::Utilisation => job.utilisation = self.ratio(binding, cell, row),
            Field::Memory => job.memory = self.size(binding, cell, row),
            Field::GpuMemory => job.gpu_memory = self.size(binding, cell, row),
            Field::MemoryAccess => job.features.memory_access = self.size(binding, cell, row),
            Field::Input => job.features.input = self.size(binding, cell, row),
            Field::Traffic => job.features.traffic = self.size(binding, cell, row),
            Field::DenseWeights => job.features.dense_weights = self.size(binding, cell, row),
            Field::EmbeddingWeights => {
                job.features.embedding_weights = self.size(binding, cell, row);
            }
            Field::EmbeddingTouched => {
                job.features.embedding_touched = self.size(binding, cell, row);
            }
            Field::Gradients => job.features.gradients = self.size(binding, cell, row),
            Field::Flops => {
                job.features.flops = self.amount(binding, cell, row).map(Flops::new);
            }
            Field::Status => {
                let status = Status::parse(cell);
                if status == Status::Other {
                    self.meet(Fault::UnknownStatus, row, cell);
                }
                job.status = Some(status);
            }
            Field::Class => {
                job.features.class =
                    self.word(cell, row, Fault::UnknownClass, |word| word.parse::<Class>().ok());
            }
            Field::Medium => {
                job.features.medium = self.word(cell, row, Fault::UnknownMedium, Medium::parse);
            }
            Field::TrafficCounts => {
                job.features.traffic_counts = self
                    .word(cell, row, Fault::Unreadable, |word| word.parse::<TrafficCounts>().ok());
            }
            Field::Machine => match places::machines(cell, job) {
                Ok(()) => {}
                Err(Wrong::Broken) => self.meet(Fault::Unreadable, row, cell),
                Err(Wrong::TooMany) => self.meet(Fault::TooManyMachines, row, cell),
            },
            Field::Attempts => {
                if let Some(fault) = philly::read_attempts(cell, job) {
                    self.meet(fault, row, &cell[..cell.len().min(60)]);
                }
                self.unzoned += u64::from(job.start.is_some()) + u64::from(job.end.is_some());
            }
            // Taken together with the number of GPUs and the machine.
            Field::Gpus | Field::GpuShare | Field::Instances | Field::Devices => {}
        }
    }

    pub(super) fn meet(&mut self, fault: Fault, row: u64, cell: &[u8]) {
        self.faults.meet(fault, || {
            let cell = String::from_utf8_lossy(&cell[..cell.len().min(80)]).into_owned();
            format!("row {row}: {cell:?}")
        });
    }

    pub(super) fn text(&mut self, cell: &[u8], to: &mut String, row: u64) {
        match std::str::from_utf8(cell) {
            Ok(text) => to.push_str(text),
            Err(_) => {
                self.meet(Fault::NotUtf8, row, cell);
                to.push_str(&String::from_utf8_lossy(cell));
            }
        }
    }

    fn word<T>(
        &mut self,
        cell: &[u8],
        row: u64,
        fault: Fault,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let found = std::str::from_utf8(cell).ok().and_then(read);
        if found.is_none() {
            self.meet(fault, row, cell);
        }
        found
    }

    /// A number as it is written, in whatever unit.
    fn written(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<f64> {
        if binding.style.comma
            && let Some(number) = binding.style.comma_number(cell)
        {
            self.meet(Fault::DecimalComma, row, cell);
            return Some(number);
        }
        binding.style.number(cell)
    }

    pub(super) fn number(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<f64> {
        let number = self.written(binding, cell, row);
        if number.is_none() {
            self.meet(Fault::Unreadable, row, cell);
        }
        number.map(|number| number * binding.unit.factor)
    }

    /// A number that is not negative.
    pub(super) fn amount(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<f64> {
        let number = self.number(binding, cell, row)?;
        self.not_negative(number, cell, row)
    }

    fn not_negative(&mut self, number: f64, cell: &[u8], row: u64) -> Option<f64> {
        if !(0.0..=1e30).contains(&number) {
            self.meet(Fault::ImpossibleCount, row, cell);
            return None;
        }
        Some(number)
    }

    fn count(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<u32> {
        let number = self.amount(binding, cell, row)?;
        if number.fract() != 0.0 || number > MOST_GPUS {
            self.meet(Fault::ImpossibleCount, row, cell);
            return None;
        }
        Some(number as u32)
    }

    pub(super) fn ratio(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<f64> {
        self.part(binding, cell, row, Fault::BusyBeyondFull)
    }

    /// From 0 to 1.
    pub(super) fn part(
        &mut self,
        binding: &Binding,
        cell: &[u8],
        row: u64,
        beyond: Fault,
    ) -> Option<f64> {
        let bare = cell.strip_suffix(b"%").map_or(cell, <[u8]>::trim_ascii_end);
        let number = self.number(binding, bare, row)?;
        let ratio =
            if bare.len() < cell.len() { number / binding.unit.factor / 100.0 } else { number };
        if !(0.0..=1.0).contains(&ratio) {
            self.meet(beyond, row, cell);
            return None;
        }
        Some(ratio)
    }

    fn size(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<Bytes> {
        // A user may write the unit into the cell.
        let written = || std::str::from_utf8(cell).ok()?.parse::<Bytes>().ok();
        match self.written(binding, cell, row) {
            Some(number) => {
                let bytes = self.not_negative(number * binding.unit.factor, cell, row)?;
                if bytes >= 1e18 {
                    self.meet(Fault::ImpossibleCount, row, cell);
                    return None;
                }
                Some(Bytes::from_f64(bytes))
            }
            None => written().or_else(|| {
                self.meet(Fault::Unreadable, row, cell);
                None
            }),
        }
    }

    fn span(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<Nanos> {
        let span = match self.written(binding, cell, row) {
            // What no time holds is longer than any, not none.
            Some(number) => {
                Nanos::from_nanos_f64((number * binding.unit.factor).clamp(f64::MIN, f64::MAX))
            }
            None => match span::written(cell) {
                Some(span) => span,
                None => {
                    self.meet(Fault::Unreadable, row, cell);
                    return None;
                }
            },
        };
        if span < Nanos::ZERO {
            self.meet(Fault::NegativeSpan, row, cell);
            return None;
        }
        Some(span)
    }

    pub(super) fn instant(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<Nanos> {
        let unknown = match binding.field {
            Field::End => Fault::EndUnknown,
            Field::Start => Fault::StartUnknown,
            _ => Fault::SubmitUnknown,
        };
        let Some(number) = self.written(binding, cell, row) else {
            let Some(dated) = binding.style.date(cell) else {
                self.meet(Fault::Unreadable, row, cell);
                return None;
            };
            if !(FIRST_DATE..BELIEVED.end).contains(&dated.at.nanos()) {
                self.meet(unknown, row, cell);
                return None;
            }
            *(if dated.offset.is_some() { &mut self.zoned } else { &mut self.unzoned }) += 1;
            let offset = dated.offset.filter(|_| self.as_written).unwrap_or(Nanos::ZERO);
            return Some(dated.at + offset);
        };
        let epoch_zero = number == 0.0 && binding.since_1970;
        if number < 0.0 || epoch_zero || (number == 0.0 && binding.field == Field::End) {
            self.meet(unknown, row, cell);
            return None;
        }
        let whole = value::integer(cell);
        let in_unit = |factor: f64| match whole {
            // Dates in nanoseconds are longer than what a double tells apart.
            Some(whole) if factor >= 1.0 => {
                let nanos = i128::from(whole) * factor.round() as i128;
                Nanos::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
            }
            // What no time holds is later than any, not none.
            _ => Nanos::from_nanos_f64((number * factor).clamp(f64::MIN, f64::MAX)),
        };
        let at = in_unit(binding.unit.factor);
        if !binding.since_1970 {
            let is_lone = at > LONE && binding.lone.contains(&number);
            let is_absurd = at.nanos() >= BELIEVED.end || is_lone;
            if is_absurd {
                self.meet(unknown, row, cell);
            }
            return (!is_absurd).then_some(at);
        }
        if BELIEVED.contains(&at.nanos()) {
            return Some(at);
        }
        // The unit in which the number is a date of this century.
        let powers = [1e-9, 1e-6, 1e-3, 1e3, 1e6, 1e9];
        let other = powers.into_iter().map(|power| in_unit(binding.unit.factor * power));
        let found = other.into_iter().find(|at| BELIEVED.contains(&at.nanos()));
        self.meet(if found.is_some() { Fault::InstantUnit } else { unknown }, row, cell);
        found
    }
}
