//! Times, sizes and rates as people write them.

use std::str::FromStr;

use crate::error::{InputError, Result};
use crate::units::{Bandwidth, Bytes, Nanos};

/// A number and the unit behind it, with or without a space.
fn split(text: &str) -> Result<(f64, &str)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '_'))).unwrap_or(text.len());
    let digits = text[..end].replace('_', "");
    let number: f64 = digits
        .parse()
        .map_err(|_| InputError::new(format!("expected a number and its unit, found {text:?}")))?;
    Ok((number, text[end..].trim()))
}

/// `64MiB`, `1.5 GB`, `4096`: at least one byte and below an exabyte. Binary and decimal units both
/// count as written.
impl FromStr for Bytes {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let (number, unit) = split(text)?;
        let factor = match unit.to_ascii_lowercase().as_str() {
            "" | "b" | "byte" | "bytes" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            "kib" | "k" => 1024.0,
            "mib" | "m" => 1024.0 * 1024.0,
            "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
            "tib" | "t" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
            _ => {
                return Err(InputError::new(format!(
                    "unknown unit {unit:?}; write MiB, GiB, MB, GB or bytes"
                )));
            }
        };
        let bytes = number * factor;
        if (1.0..1e18).contains(&bytes) {
            Ok(Self::from_f64(bytes))
        } else {
            Err(InputError::new("expected a size of at least one byte and below an exabyte"))
        }
    }
}

/// `10ms`, `1.5 s`, `250us`, `7ns`, `5min`, `30m`, `2h`, `30d`, and several as in `1h30m`: below three
/// centuries. A unit is needed, except for 0.
impl FromStr for Nanos {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self> {
        let (number, rest) = split(text)?;
        let (unit, rest) =
            rest.split_at(rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len()));
        let unit = unit.trim();
        let nanos = match unit {
            "d" => number * 86_400e9,
            "h" => number * 3_600e9,
            "min" | "m" => number * 60e9,
            "s" => number * 1e9,
            "ms" => number * 1e6,
            "us" => number * 1e3,
            "ns" => number,
            "" if number == 0.0 && rest.is_empty() => 0.0,
            "" => {
                return Err(InputError::new(format!(
                    "{text:?} has no unit; write d, h, min, s, ms, us or ns"
                )));
            }
            _ => {
                return Err(InputError::new(format!(
                    "unknown unit {unit:?}; write d, h, min, s, ms, us or ns"
                )));
            }
        };
        let more = if rest.is_empty() { Self::ZERO } else { rest.parse()? };
        if nanos + (more.nanos() as f64) < 9e18 {
            Ok(Self::from_nanos_f64(nanos) + more)
        } else {
            Err(InputError::new("too long a time"))
        }
    }
}

/// `25 Gbit/s`, `100Gb/s`, `12.5 GB/s`. Bits and bytes differ by their case only, so a unit is needed.
impl FromStr for Bandwidth {
    type Err = InputError;

    fn from_str(text: &str) -> Result<Self, InputError> {
        let (number, unit) = split(text)?;
        let factor = match unit {
            "Gbit/s" | "Gb/s" | "Gbps" => 1e9 / 8.0,
            "Mbit/s" | "Mb/s" | "Mbps" => 1e6 / 8.0,
            "GB/s" | "GBps" => 1e9,
            "MB/s" | "MBps" => 1e6,
            _ => {
                return Err(InputError::new(format!("unknown unit {unit:?} of a rate"))
                    .hint("write Gbit/s, Mbit/s, GB/s or MB/s"));
            }
        };
        let rate = number * factor;
        if (1.0..1e15).contains(&rate) {
            Ok(Self::from_bytes_per_sec(rate))
        } else {
            Err(InputError::new("expected a rate above zero and below a petabyte per second"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_have_units_too() {
        let time = |text: &str| text.parse::<Nanos>().expect("a time");
        assert_eq!(time("2h"), Nanos::from_millis(7_200_000));
        assert_eq!(time("1.5 d"), time("36h"));
        assert_eq!(time("90min"), time("5400s"));
        assert_eq!(time("1h30m"), time("90 min"));
        assert_eq!(time("1d 2h 0.5s"), time("93600.5s"));
        assert!("1e9 d".parse::<Nanos>().is_err());
    }

    #[test]
    fn sizes_and_times_need_their_units() {
        assert_eq!("64MiB".parse(), Ok(Bytes::from_mib(64)));
        assert_eq!("1.5 GB".parse::<Bytes>(), Ok(Bytes::new(1_500_000_000)));
        assert_eq!("4_096".parse::<Bytes>(), Ok(Bytes::new(4096)));
        assert_eq!("17 bytes".parse::<Bytes>(), Ok(Bytes::new(17)));
        assert_eq!("1.5s".parse::<Nanos>(), Ok(Nanos::from_millis(1500)));
        assert_eq!("0".parse::<Nanos>(), Ok(Nanos::ZERO));
        for wrong in ["", "x", "-1GB", "1e3", "5 parsecs", "0", "NaN", "9999999999999TiB"] {
            assert!(wrong.parse::<Bytes>().is_err(), "{wrong:?}");
        }
        for wrong in ["", "10", "ms", "-1ms", "1 week", "99999999999s", "1h30", "1h x", "0 5s"] {
            assert!(wrong.parse::<Nanos>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn rates() {
        assert_eq!("25 Gbit/s".parse::<Bandwidth>().unwrap().gb_per_sec(), 3.125);
        assert_eq!("12.5GB/s".parse::<Bandwidth>().unwrap().gb_per_sec(), 12.5);
        for wrong in ["25", "25 gbit/s", "0 GB/s", "1e9 GB/s"] {
            assert!(wrong.parse::<Bandwidth>().is_err(), "{wrong}");
        }
    }
}
