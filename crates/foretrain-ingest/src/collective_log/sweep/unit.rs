//! Units as people write them in titles and behind numbers.

/// Binary over decimal, by power.
const KIB: f64 = 1024.0;

/// What a unit measures, and its size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Unit {
    /// Bytes. `KB` may mean 1,000 or 1,024: then both are given.
    Size { binary: f64, decimal: f64 },
    /// Microseconds.
    Time(f64),
    /// Decimal gigabytes per second. `gbps` may mean bits or bytes: then both are given.
    Rate { bits: f64, bytes: f64 },
}

impl Unit {
    /// The unit of this name: `B`, `KiB`, `MB`, `us`, `GB/s`, `Gbps`. Case matters where it tells
    /// bits from bytes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        time(text).map(Self::Time).or_else(|| rate(text)).or_else(|| size(text))
    }
}

fn time(text: &str) -> Option<f64> {
    Some(match text {
        "s" | "sec" | "secs" | "second" | "seconds" => 1e6,
        "ms" | "msec" | "millisecond" | "milliseconds" => 1e3,
        "us" | "usec" | "µs" | "μs" | "microsecond" | "microseconds" => 1.0,
        "ns" | "nsec" | "nanosecond" | "nanoseconds" => 1e-3,
        _ => return None,
    })
}

/// The power of a thousand that a letter stands for.
fn power(letter: char) -> Option<i32> {
    Some(match letter.to_ascii_lowercase() {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        _ => return None,
    })
}

fn rate(text: &str) -> Option<Unit> {
    let body = ["/sec", "/s", "ps"].iter().find_map(|end| text.strip_suffix(end))?;
    let letter = body.chars().next()?;
    let power = power(letter)?;
    let decimal = 1e3_f64.powi(power) / 1e9;
    let (bits, bytes) = match &body[1..] {
        "B" => (decimal, decimal),
        "iB" => (KIB.powi(power) / 1e9, KIB.powi(power) / 1e9),
        // All small: nobody knows what the author meant.
        "b" if letter.is_ascii_lowercase() && letter != 'k' => (decimal / 8.0, decimal),
        "b" | "bit" | "bits" => (decimal / 8.0, decimal / 8.0),
        _ => return None,
    };
    Some(Unit::Rate { bits, bytes })
}

fn size(text: &str) -> Option<Unit> {
    if matches!(text, "B" | "byte" | "bytes" | "Bytes") {
        return Some(Unit::Size { binary: 1.0, decimal: 1.0 });
    }
    let power = power(text.chars().next()?)?;
    let (binary, decimal) = (KIB.powi(power), 1e3_f64.powi(power));
    match &text[1..] {
        "iB" => Some(Unit::Size { binary, decimal: binary }),
        "" | "B" | "b" => Some(Unit::Size { binary, decimal }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_bytes_and_binary_prefixes_are_told_apart() {
        let mib = 1_048_576.0;
        for (text, want) in [
            ("B", Some(Unit::Size { binary: 1.0, decimal: 1.0 })),
            ("MB", Some(Unit::Size { binary: mib, decimal: 1e6 })),
            ("MiB", Some(Unit::Size { binary: mib, decimal: mib })),
            ("us", Some(Unit::Time(1.0))),
            ("ms", Some(Unit::Time(1e3))),
            ("GB/s", Some(Unit::Rate { bits: 1.0, bytes: 1.0 })),
            ("GBps", Some(Unit::Rate { bits: 1.0, bytes: 1.0 })),
            ("Gbps", Some(Unit::Rate { bits: 0.125, bytes: 0.125 })),
            ("Gbit/s", Some(Unit::Rate { bits: 0.125, bytes: 0.125 })),
            ("gbps", Some(Unit::Rate { bits: 0.125, bytes: 1.0 })),
            ("MB/s", Some(Unit::Rate { bits: 1e-3, bytes: 1e-3 })),
            ("%", None),
            ("x", None),
            ("", None),
            ("é/s", None),
        ] {
            assert_eq!(Unit::parse(text), want, "{text}");
        }
    }
}
