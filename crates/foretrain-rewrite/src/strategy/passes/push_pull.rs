//! BytePS's optimal split of servers.

use super::collectives::Topology;
use crate::strategy::draft::{ServerPlan, Way};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "push-pull",
    stage: Stage::Topology,
    about: "Replicas of a machine sum up, then push to spare CPU machines and to each other, split so that all NICs finish together: 2n(n-1)M/((n^2+kn-2k)B) with k spare machines.",
    source: "BytePS (OSDI '20); the split is recalled",
    parameters: &[
        Parameter::new("spare", Kind::Count, "0", "Machines without devices that serve."),
        Parameter::new(
            "local",
            Kind::Flag,
            "true",
            "Replicas of one machine sum up before they push.",
        ),
    ],
    build: &|values| {
        let own = u32::try_from(values.count("spare").unwrap_or(0)).unwrap_or(u32::MAX);
        let plan = ServerPlan { own, colocated: true, local: values.flag("local") };
        Ok(Box::new(Topology(Way::Servers(plan))))
    },
};
