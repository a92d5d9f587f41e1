//! Values with units and ranges, as people write them.

use std::str::FromStr;
use std::sync::Arc;

use foretrain::core::{Bandwidth, Bytes, InputError, Nanos};
use foretrain::cost::Method;
use foretrain::cost::interference::Fixed;
use foretrain::cost::own::OwnCosts;
use foretrain::graph::{CollectiveKind, Glob};
use foretrain::ingest::collective_log::kind_of;
use foretrain::predict::BucketCopies;
use foretrain::predict::own;
use foretrain::predict::roles::{GivenRole, Role};
use foretrain::rewrite::strategy::{Registry, Strategy};

use crate::commands::interference::Choice;

/// A size: `64MiB`, `1.5 GB`, `4096`.
pub(super) fn size(text: &str) -> Result<Bytes, String> {
    hinted(text)
}

/// Rate of bucket copies: `4GB/s`, `none`.
pub(super) fn bucket_copies(text: &str) -> Result<BucketCopies, String> {
    if text.trim() == "none" {
        return Ok(BucketCopies::None);
    }
    let amount = text.trim().strip_suffix("/s").ok_or("expected a rate, as in 4GB/s, or none")?;
    Ok(BucketCopies::At(Bandwidth::from_bytes_per_sec(size(amount)?.as_f64())))
}

/// A part of a whole: `3%`.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    percent_up_to(text, 100)
}

/// So many hundredths: `150%`.
pub(super) fn percent_up_to(text: &str, most: u32) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    match number {
        Some(number) if (0.0..=f64::from(most)).contains(&number) => Ok(number / 100.0),
        _ => Err(format!("expected 0 to {most} per cent, as in 3%")),
    }
}

/// Passes of a synchronisation strategy.
pub(super) fn strategy(text: &str) -> Result<Arc<Strategy>, String> {
    Registry::current().parse(text).map(Arc::new).map_err(advised)
}

/// The same, kept as it is.
pub(super) fn strategy_text(text: &str) -> Result<String, String> {
    strategy(text).map(|_| text.to_owned())
}

/// A time: `10ms`, `1.5 s`, `250us`, `7ns`. A unit is needed, except for 0.
pub(super) fn time(text: &str) -> Result<Nanos, String> {
    hinted(text)
}

/// What the library reads itself, with its advice.
pub(super) fn hinted<T: FromStr<Err = InputError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(advised)
}

pub(super) fn advised(error: InputError) -> String {
    [&[error.to_string()], error.hints()].concat().join("; ")
}

/// `none`, `analytic`, `pretrained`, `fixed`, `fixed:1.3,1.1`, or a file.
pub(super) fn interference(text: &str) -> Result<Choice, String> {
    let Some(factors) = text.strip_prefix("fixed") else {
        return Ok(match text {
            "none" => Choice::None,
            "analytic" => Choice::Analytic,
            "pretrained" => Choice::Pretrained,
            name if own::interference(name).is_some() => Choice::Installed(name.into()),
            path => Choice::File(path.into()),
        });
    };
    let Some(factors) = factors.strip_prefix(':') else {
        return if factors.is_empty() {
            Ok(Choice::Fixed(Fixed::default()))
        } else {
            Ok(Choice::File(text.into()))
        };
    };
    let advice = "expected fixed:COMPUTATION,COMMUNICATION, as in fixed:1.3,1.1";
    let parts: Vec<f64> = factors
        .split(',')
        .map(|part| part.trim().parse().map_err(|_| advice.to_owned()))
        .collect::<Result<_, String>>()?;
    let fixed = match parts[..] {
        [both] => Fixed::new(both, both),
        [compute, communication] => Fixed::new(compute, communication),
        _ => return Err(advice.into()),
    };
    fixed.map(Choice::Fixed).map_err(|error| error.to_string())
}

/// A cost function that was installed in this process.
pub(super) fn own_costs(name: &str) -> Result<Arc<dyn OwnCosts>, String> {
    own::costs(name).ok_or_else(|| match own::costs_names() {
        names if names.is_empty() => "programs install cost functions; there is none here".into(),
        names => format!("no cost function is called so; there are {}", names.join(", ")),
    })
}

/// Groups and their role: `dp_*=dp`.
pub(super) fn role(text: &str) -> Result<GivenRole, String> {
    let (groups, role) = text.rsplit_once('=').ok_or("expected GROUPS=ROLE, as in 'dp_*=dp'")?;
    let role = Role::parse(role.trim())
        .ok_or_else(|| format!("unknown role {role:?}; write dp, tp, pp or ep"))?;
    Ok(GivenRole { groups: Glob::new(groups.trim()), role })
}

/// An operation, as any tool spells it: `all-reduce`, `all_reduce`, `AllReduce`.
pub(super) fn collective(text: &str) -> Result<CollectiveKind, String> {
    kind_of(text).ok_or_else(|| format!("unknown operation {text:?}; write all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, gather, scatter or send-recv"))
}

/// Operations: one as [`collective`] takes it, or `all`; several come separated by commas.
pub(super) fn collectives(text: &str) -> Result<Vec<CollectiveKind>, String> {
    use CollectiveKind::{
        AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter, SendRecv,
    };
    if text.trim() == "all" {
        return Ok(vec![
            AllReduce,
            AllGather,
            ReduceScatter,
            AllToAll,
            Broadcast,
            Reduce,
            Gather,
            Scatter,
            SendRecv,
        ]);
    }
    Ok(vec![collective(text)?])
}

/// An algorithm as `NCCL_ALGO` spells it, in any case.
pub(super) fn algorithm(text: &str) -> Result<Method, String> {
    let named = |method: &Method| method.as_str().eq_ignore_ascii_case(text.trim());
    Method::NAMED.into_iter().find(named).ok_or_else(|| {
        let names = Method::NAMED.map(|method| method.as_str().to_lowercase());
        format!("expected one of {}", names.join(", "))
    })
}

/// A job size or, by doubling, a range of them: `16`, `16..4096`.
pub(super) fn gpu_range(text: &str) -> Result<Vec<u32>, String> {
    let counts = doubled(text, |text| gpus(text).map(u64::from))?;
    // Between the ends, which are such counts.
    Ok(counts.into_iter().filter_map(|count| u32::try_from(count).ok()).collect())
}

/// A size or, by doubling, a range of them: `64MiB`, `1K..8G`.
pub(super) fn size_range(text: &str) -> Result<Vec<Bytes>, String> {
    let sizes = doubled(text, |text| size(text).map(Bytes::get))?;
    Ok(sizes.into_iter().map(Bytes::new).collect())
}

/// A value, or from the first of two by doubling up to the second.
fn doubled(text: &str, value: impl Fn(&str) -> Result<u64, String>) -> Result<Vec<u64>, String> {
    let Some((from, to)) = text.split_once("..") else { return Ok(vec![value(text)?]) };
    let (from, to) = (value(from)?, value(to)?);
    if from > to {
        return Err(format!("{text} counts backwards"));
    }
    let next = |value: &u64| value.checked_mul(2).filter(|next| *next <= to);
    Ok(std::iter::successors(Some(from), next).collect())
}

/// Two times: `10ms..50ms`.
pub(super) fn window(text: &str) -> Result<(Nanos, Nanos), String> {
    let (from, to) = text
        .split_once("..")
        .or_else(|| text.split_once(','))
        .ok_or("expected two times, as in 10ms..50ms")?;
    let (from, to) = (time(from)?, time(to)?);
    if from < to { Ok((from, to)) } else { Err("the window ends before it begins".into()) }
}

/// Ranks: `0`, `0-7`; several come separated by commas.
pub(super) fn ranks(text: &str) -> Result<Vec<u32>, String> {
    const MOST: u32 = 1 << 20;
    let number = |text: &str| -> Result<u32, String> {
        let rank = text.trim().parse().map_err(|_| format!("expected a rank, found {text:?}"))?;
        if rank < MOST { Ok(rank) } else { Err(format!("rank {rank} is beyond {MOST}")) }
    };
    let Some((from, to)) = text.split_once('-') else { return Ok(vec![number(text)?]) };
    let (from, to) = (number(from)?, number(to)?);
    if from <= to { Ok((from..=to).collect()) } else { Err(format!("{text} counts backwards")) }
}

/// A job size.
pub(super) fn gpus(text: &str) -> Result<u32, String> {
    count(text, "GPUs")
}

/// A number of machines.
pub(super) fn nodes(text: &str) -> Result<u32, String> {
    count(text, "nodes")
}

/// So many of something, one at least.
pub(super) fn count(text: &str, of: &str) -> Result<u32, String> {
    match text.trim().parse() {
        Ok(0) => Err(format!("expected a number of {of}, at least 1")),
        Ok(count) => Ok(count),
        Err(_) => Err(format!("expected a number of {of}, 1 to {}", u32::MAX)),
    }
}

/// A number above zero.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number > 0.0 && number < 1e15 => Ok(number),
        Ok(number) if number >= 1e15 => Err("expected a number below 1e15".into()),
        _ => Err("expected a number above zero".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_parts_need_their_units() {
        let four = Bandwidth::from_gb_per_sec(4.0);
        assert_eq!(bucket_copies("4 GB/s"), Ok(BucketCopies::At(four)));
        assert_eq!(bucket_copies("none"), Ok(BucketCopies::None));
        assert_eq!(percent("3%"), Ok(0.03));
        for wrong in ["", "4GB", "4", "-1GB/s", "NaN/s", "/s"] {
            assert!(bucket_copies(wrong).is_err(), "{wrong:?}");
            assert!(percent(wrong).is_err(), "{wrong:?}");
        }
        assert!(percent("101%").is_err());
        assert_eq!(percent_up_to("250%", 1_000), Ok(2.5));
        assert!(percent_up_to("1001%", 1_000).is_err_and(|why| why.contains("1000 per cent")));
    }

    #[test]
    fn operations_are_named_or_all() {
        assert_eq!(collectives("AllReduce"), Ok(vec![CollectiveKind::AllReduce]));
        assert_eq!(collectives("all").map(|kinds| kinds.len()), Ok(9));
        assert!(collectives("all-fold").is_err());
    }

    #[test]
    fn sizes_and_times_need_their_units() {
        assert_eq!(size("64MiB"), Ok(Bytes::from_mib(64)));
        assert_eq!(size("1.5 GB"), Ok(Bytes::new(1_500_000_000)));
        assert_eq!(size("4_096"), Ok(Bytes::new(4096)));
        assert_eq!(time("1.5s"), Ok(Nanos::from_millis(1500)));
        assert_eq!(time("0"), Ok(Nanos::ZERO));
        for wrong in ["", "x", "-1GB", "1e3", "5 parsecs", "0", "NaN", "9999999999999TiB"] {
            assert!(size(wrong).is_err(), "{wrong:?}");
        }
        for wrong in ["", "10", "ms", "-1ms", "1 week", "99999999999s"] {
            assert!(time(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn ranges_run_forwards() {
        assert_eq!(ranks("3"), Ok(vec![3]));
        assert_eq!(ranks("0-3"), Ok(vec![0, 1, 2, 3]));
        assert!(ranks("7-0").is_err() && ranks("a").is_err() && ranks("0-4000000000").is_err());
        assert_eq!(window("1ms..2ms"), Ok((Nanos::from_millis(1), Nanos::from_millis(2))));
        assert!(window("2ms..1ms").is_err() && window("1ms").is_err());
        assert!(gpus("0").is_err() && gpus("-8").is_err() && gpus("8") == Ok(8));
        assert_eq!(gpu_range("24"), Ok(vec![24]));
        assert_eq!(gpu_range("16..100"), Ok(vec![16, 32, 64]));
        assert_eq!(gpu_range("4294967295..4294967295"), Ok(vec![u32::MAX]));
        assert_eq!(size_range("512..2K"), Ok([512, 1024, 2048].map(Bytes::new).to_vec()));
        assert!(gpu_range("8..2").is_err() && gpu_range("..8").is_err() && gpu_range("0").is_err());
        assert!(size_range("1K..").is_err() && size_range("1..2..3").is_err());
        assert!(positive("0").is_err() && positive("nan").is_err() && positive("2.5") == Ok(2.5));
        let said = |text| positive(text).unwrap_err();
        assert!(said("1e300").contains("below 1e15") && said("-1e300").contains("above zero"));
        assert!(nodes("0").unwrap_err().contains("nodes") && nodes("3") == Ok(3));
    }
}
