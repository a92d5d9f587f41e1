//! Parameter servers.

use foretrain_core::InputError;

use super::collectives::Topology;
use crate::strategy::draft::{ServerPlan, Way};
use crate::strategy::parameters::{Kind, Parameter};
use crate::strategy::pass::{PassKind, Stage};

pub(super) const KIND: PassKind = PassKind {
    name: "servers",
    stage: Stage::Topology,
    about: "Workers push gradients to parameter servers, which sum them, and pull the result. With servers of their own a worker moves M each way and each of k servers nM/k; with a shard on every worker a NIC carries 2(n-1)M/n.",
    source: "BytePS's rationale",
    parameters: &[
        Parameter::new(
            "count",
            Kind::Count,
            "1",
            "Machines that only serve; ignored where workers serve.",
        ),
        Parameter::new("colocated", Kind::Flag, "false", "A shard on each worker instead."),
        Parameter::new(
            "local",
            Kind::Flag,
            "false",
            "Replicas of one machine sum up before they push.",
        ),
    ],
    build: &|values| {
        let (count, colocated) = (values.count("count").unwrap_or(1), values.flag("colocated"));
        if count == 0 && !colocated {
            return Err(InputError::new("count = 0: expected at least one server")
                .hint("for servers on the workers write servers(colocated=true)"));
        }
        let own = if colocated { 0 } else { u32::try_from(count).unwrap_or(u32::MAX) };
        let plan = ServerPlan { own, colocated, local: values.flag("local") };
        Ok(Box::new(Topology(Way::Servers(plan))))
    },
};
