//! Values that only estimates and plans take.

use std::str::FromStr;

use foretrain::core::{DType, InputError};
use foretrain::cost::kernels::AttentionKernel;
use foretrain::plan::training::Lora;
use foretrain::plan::{Optimiser, Precision, Schedule};

use super::values::{advised, hinted, positive, size};
use crate::commands::job::AttentionForm;
use crate::commands::plan::{MemoryLimit, Price};

/// Number formats by name.
pub(super) fn precision(text: &str) -> Result<Precision, String> {
    Precision::parse(text).map_err(advised)
}

/// An optimiser by name.
pub(super) fn optimiser(text: &str) -> Result<Optimiser, String> {
    Optimiser::parse(text).map_err(advised)
}

/// A number format, as any tool spells it.
pub(super) fn dtype(text: &str) -> Result<DType, String> {
    DType::parse(text)
        .ok_or_else(|| format!("{text:?} is no number format; write bf16, fp16 or fp32"))
}

/// What runs attention: a kernel by name, or none.
pub(super) fn attention(text: &str) -> Result<AttentionForm, String> {
    if text == "written-out" {
        return Ok(AttentionForm(None));
    }
    let kernel = AttentionKernel::ALL.into_iter().find(|kernel| kernel.as_str() == text);
    kernel
        .map(|kernel| AttentionForm(Some(kernel)))
        .ok_or_else(|| "expected tuned, flash-2, flash-1 or written-out".into())
}

/// Adapters: `16`, `16,attention`.
pub(super) fn lora(text: &str) -> Result<Lora, String> {
    let (rank, attention_only) = match text.split_once(',') {
        Some((rank, "attention")) => (rank, true),
        Some(_) => return Err("expected a rank, as in 16, or 16,attention".into()),
        None => (text, false),
    };
    match rank.trim().parse() {
        Ok(rank) if rank > 0 => Ok(Lora { rank, attention_only }),
        _ => Err("expected a rank of at least 1, as in 16 or 16,attention".into()),
    }
}

/// Text that reads as a `T`, kept as it is.
pub(super) fn text_of<T: FromStr<Err = InputError>>(text: &str) -> Result<String, String> {
    hinted::<T>(text).map(|_| text.to_owned())
}

/// Schedules: one by its name, or `all`; several come separated by commas.
pub(super) fn schedules(text: &str) -> Result<Vec<Schedule>, String> {
    if text.trim() == "all" {
        return Ok(Schedule::ALL.to_vec());
    }
    let named = Schedule::ALL.into_iter().find(|schedule| schedule.as_str() == text.trim());
    named.map(|schedule| vec![schedule]).ok_or_else(|| {
        let names = Schedule::ALL.map(Schedule::as_str);
        format!("expected one of {}, or all", names.join(", "))
    })
}

/// Memory of a device: `90%`, `0.9`, `70GiB`.
pub(super) fn memory(text: &str) -> Result<MemoryLimit, String> {
    let trimmed = text.trim();
    let share = match trimmed.strip_suffix('%') {
        Some(number) => number.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => trimmed.parse::<f64>().ok().filter(|number| *number <= 1.0),
    };
    match share {
        Some(share) if share > 0.0 && share <= 1.0 => Ok(MemoryLimit::Share(share)),
        Some(_) => Err("expected a part of a device's memory, as in 90%".into()),
        None => size(text).map(MemoryLimit::Size),
    }
}

/// A large number: `300B`, `1.5T`, `2e12`.
pub(super) fn amount(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let units = [("K", 1e3), ("M", 1e6), ("B", 1e9), ("G", 1e9), ("T", 1e12)];
    let unit = units.into_iter().find_map(|(unit, scale)| {
        let number =
            trimmed.strip_suffix(unit).or_else(|| trimmed.strip_suffix(&unit.to_lowercase()));
        number.map(|number| (number, scale))
    });
    let (number, scale) = unit.unwrap_or((trimmed, 1.0));
    match number.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number * scale <= 1e18 => Ok(number * scale),
        _ => Err("expected a number from 1 to 1e18, as in 300B, 1.5T or 2e12".into()),
    }
}

/// A long time, in seconds: `30d`, `12h`, `90min`, `3600s`, `2w`.
pub(super) fn long_time(text: &str) -> Result<f64, String> {
    let units = [("min", 60.0), ("s", 1.0), ("h", 3600.0), ("d", 86_400.0), ("w", 604_800.0)];
    let found = units
        .into_iter()
        .find_map(|(unit, scale)| text.trim().strip_suffix(unit).map(|number| (number, scale)));
    match found.map(|(number, scale)| (number.trim().parse::<f64>(), scale)) {
        Some((Ok(number), scale)) if number > 0.0 && number * scale <= 1e12 => Ok(number * scale),
        _ => Err("expected a time with its unit, as in 30d, 12h or 90min".into()),
    }
}

/// A price per GPU and hour: `2.5`, `dgx-h100=2.5`.
pub(super) fn price(text: &str) -> Result<Price, String> {
    let (cluster, dollars) = match text.rsplit_once('=') {
        Some((name, dollars)) => (Some(name.trim().to_owned()), dollars),
        None => (None, text),
    };
    Ok(Price { cluster, dollars: positive(dollars)? })
}

#[cfg(test)]
mod tests {
    use foretrain::core::Bytes;

    use super::*;

    #[test]
    fn memory_is_a_share_or_a_size() {
        assert_eq!(memory("90%"), Ok(MemoryLimit::Share(0.9)));
        assert_eq!(memory("0.9"), Ok(MemoryLimit::Share(0.9)));
        assert_eq!(memory("70GiB"), Ok(MemoryLimit::Size(Bytes::from_gib(70))));
        for wrong in ["0", "101%", "-5%", "NaN", "", "x"] {
            assert!(memory(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn amounts_and_times_have_units() {
        assert_eq!(
            [amount("300B"), amount("2e12"), amount("1.5T")],
            [Ok(3e11), Ok(2e12), Ok(1.5e12)]
        );
        assert_eq!([long_time("30d"), long_time("90min")], [Ok(2_592_000.0), Ok(5400.0)]);
        for wrong in ["", "0", "-1B", "inf", "1e300", "T"] {
            assert!(amount(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["30", "d", "0h", "nan s", "1e300d"] {
            assert!(long_time(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn prices_may_name_a_cluster() {
        let named = Price { cluster: Some("dgx-h100".into()), dollars: 2.5 };
        assert_eq!(price("dgx-h100=2.5"), Ok(named));
        assert_eq!(price("2"), Ok(Price { cluster: None, dollars: 2.0 }));
        assert!(price("dgx-h100=").is_err() && price("free").is_err());
        assert_eq!(lora("16,attention"), Ok(Lora { rank: 16, attention_only: true }));
        assert!(lora("0").is_err() && lora("16,all").is_err() && lora("x").is_err());
        assert_eq!(schedules("all").map(|all| all.len()), Ok(7));
        assert!(schedules("2f2b").is_err() && precision("fp7").is_err() && dtype("q").is_err());
    }
}
