//! Series and points that cannot both be right.

use foretrain_core::Result;
use foretrain_core::units::significant;

use super::input::ScalingInput;
use super::normal::{Normal, Normalised};

/// Rates per GPU of one machine that differ by more are another job or another set-up.
const OTHER_RATE: f64 = 1.25;
/// Efficiencies between the same two sizes that differ by more, absolute.
const OTHER_EFFICIENCY: f64 = 0.15;

/// Names them and says what to ask.
pub(super) fn find(input: &ScalingInput) -> Vec<String> {
    let normal: Vec<Normalised<'_>> = input.series.iter().filter_map(Normalised::of).collect();
    let mut found: Vec<String> = normal.iter().flat_map(within).collect();
    for (i, a) in normal.iter().enumerate() {
        for b in &normal[i + 1..] {
            let machine = a.series.machine.as_ref();
            if machine.is_some() && machine == b.series.machine.as_ref() {
                found.extend(between(a, b));
            }
        }
    }
    found
}

fn within(normal: &Normalised<'_>) -> Vec<String> {
    let twice = normal.points.iter().filter(|point| point.is_contradicted);
    let mut places: Vec<(u32, Vec<String>)> = Vec::new();
    for point in twice {
        match places.iter_mut().find(|(gpus, _)| *gpus == point.gpus) {
            Some((_, list)) => list.push(point.point.place.clone()),
            None => places.push((point.gpus, vec![point.point.place.clone()])),
        }
    }
    let say = |(gpus, list): (u32, Vec<String>)| {
        format!(
            "{} differ by more than a tenth at {gpus} GPUs under equal conditions and are not averaged but left out: what differs between them (batch, precision, software, nodes)? Give it, or make them two series",
            list.join(" and ")
        )
    };
    places.into_iter().map(say).collect()
}

fn between(a: &Normalised<'_>, b: &Normalised<'_>) -> Option<String> {
    let rate = |normal: &Normalised<'_>, gpus: u32| {
        let point = normal.trusted().find(|point| point.gpus == gpus)?;
        Some((normal.throughput(gpus, point.cost), point.cost))
    };
    let mut common: Vec<u32> = a.trusted().map(|point: &Normal<'_>| point.gpus).collect();
    common.retain(|gpus| rate(b, *gpus).is_some());
    common.sort_unstable();
    common.dedup();
    let smallest = *common.first()?;
    let (at_a, at_b) = (rate(a, smallest)?, rate(b, smallest)?);
    let mut differences = Vec::new();
    let unit = |normal: &Normalised<'_>| normal.points[0].point.measure.family().to_owned();
    let are_rates = unit(a) == unit(b);
    if are_rates && let (Some(of_a), Some(of_b)) = (at_a.0, at_b.0) {
        let ratio = (of_a / of_b).max(of_b / of_a);
        if ratio > OTHER_RATE {
            differences.push(format!(
                "{smallest} GPUs do {} against {} {} ({ratio:.1} x)",
                significant(of_a, 4),
                significant(of_b, 4),
                unit(a)
            ));
        }
    }
    for &gpus in &common[1..] {
        let (ea, eb) = (at_a.1 / rate(a, gpus)?.1, at_b.1 / rate(b, gpus)?.1);
        if (ea - eb).abs() > OTHER_EFFICIENCY {
            differences.push(format!(
                "from {smallest} to {gpus} GPUs the efficiency is {:.0} % against {:.0} %",
                ea * 100.0,
                eb * 100.0
            ));
        }
    }
    if differences.is_empty() {
        return None;
    }
    Some(format!(
        "\"{}\" and \"{}\" are both of {}, but {}. They are fitted apart, never averaged. What differs: the transport (TCP, RDMA, EFA) and NIC, the precision (16-bit gradients are half the bytes, tensor cores make steps shorter), the batch per GPU, overlap and fusion of gradients, or software versions?",
        a.series.name,
        b.series.name,
        a.series.machine.as_deref().unwrap_or_default(),
        differences.join("; ")
    ))
}

/// Series need names to be told apart.
pub(super) fn check_names(input: &ScalingInput) -> Result<()> {
    let mut names: Vec<&str> = input.series.iter().map(|series| series.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            Err(foretrain_core::InputError::new(format!("two series are called \"{}\"", pair[0]))
                .hint("give each series a name of its own"))
        }
    }
}
