//! What was given and has no part in the answer: said, so that nobody takes it for considered.

use foretrain_hardware::DeviceKind;
use foretrain_rewrite::BucketCaps;

use super::PredictOptions;
use super::base::Base;
use super::copies::BucketCopies;
use super::ranks::Ranks;
use crate::roles::GivenRole;

/// Names shown of those that would have fitted.
const SHOWN: usize = 6;

/// Names options of building gradient synchronisation where none is built, and cores that no
/// communication takes from.
pub(crate) fn warn_about_unused(
    base: &Base<'_>,
    options: &PredictOptions,
    warnings: &mut Vec<String>,
) {
    let layout = &base.ranks.lead().layout;
    let keeps = options.strategy.is_none() && !layout.lacks_synchronisation();
    let of_building = [
        (options.buckets != BucketCaps::default(), "the bucket cap"),
        (options.gradient_bytes.is_some(), "gradient bytes"),
        (options.bucket_copies != BucketCopies::default(), "the rate of bucket copies"),
        (options.buffer_bytes.is_some(), "buffer bytes"),
        (options.primitives.is_some(), "primitives"),
    ];
    let unused: Vec<&str> =
        of_building.into_iter().filter(|(given, _)| *given).map(|(_, what)| what).collect();
    if keeps && !unused.is_empty() {
        warnings.push(format!(
            "not used: {}. The recording's own gradient synchronisation is kept; --strategy ddp, say, would take its place",
            unused.join(", ")
        ));
    }
    if options.cores.is_none() {
        return;
    }
    if base.cluster.node.device.kind != DeviceKind::Cpu {
        warnings.push("not used: cores. Devices of this cluster communicate without them".into());
    } else if keeps && layout.world_size > 1 && base.from.is_none() {
        warnings.push(
            "not used: cores. What communication takes from computing is in the recording; that it takes more or less here can be told if --recorded-on says where that was"
                .into(),
        );
    }
}

/// Names patterns of roles that no group has.
pub(crate) fn warn_about_roles(ranks: &Ranks, roles: &[GivenRole], warnings: &mut Vec<String>) {
    let groups = || ranks.classes.iter().flat_map(|class| &class.graph.groups);
    for given in roles {
        if groups().any(|group| given.groups.matches(&group.name)) {
            continue;
        }
        let mut names: Vec<&str> = groups().map(|group| group.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let there = match names.as_slice() {
            [] => "the recording names no groups".to_owned(),
            [..] => format!("its groups are {}", names[..names.len().min(SHOWN)].join(", ")),
        };
        let pattern = given.groups.as_str();
        warnings
            .push(format!("no group matches --role '{pattern}={}': {there}", given.role.as_str()));
    }
}
