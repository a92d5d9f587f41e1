//! Communication by CPU libraries takes processor time from the host work of its rank.
//!
//! Each host thread has a resource of capacity 1: the cores of its rank. Its own work takes all of
//! it, a collective the part that its library's thread keeps busy on the average. Both get equal
//! parts or what they need, as from a fair scheduler: a thread that mostly waits for packets gets
//! its time at once, and computing slows down by as much. Threads of one rank do not take from each
//! other here: what they do to each other is in the recording already.

use foretrain_core::{Evidence, EvidenceKind, Nanos};
use foretrain_cost::{CollectiveCall, Fabric, host_time};
use foretrain_graph::{Job, NodeKind, QueueKind};
use foretrain_hardware::{Cluster, DeviceKind};
use foretrain_sim::{Demand, Resource, SimOptions};

use super::cost::Costs;

/// Part of its rank's `cores` that a collective of duration `time` keeps busy.
pub(super) fn host_use(call: &CollectiveCall, fabric: &Fabric, time: Nanos, cores: f64) -> f64 {
    if time <= Nanos::ZERO || time == Nanos::MAX {
        return 0.0;
    }
    let busy = host_time(call, fabric).nanos() as f64;
    (busy / (time.nanos() as f64 * cores)).min(1.0)
}

/// What is taken for granted of a CPU cluster's cores.
pub(super) fn contention_evidence(cluster: &Cluster, cores: Option<f64>) -> Option<Evidence> {
    const WHAT: &str = "communication beside computing";
    if cluster.node.device.kind != DeviceKind::Cpu {
        return None;
    }
    Some(match cores {
        Some(cores) => {
            let what = format!(
                "takes its processor time, as on links without limit, from the {cores} core(s) that a rank has"
            );
            Evidence::new(EvidenceKind::Inferred, WHAT, what, 0.1)
        }
        None => {
            let what = "has cores of its own: computing is not slowed (--cores)";
            Evidence::new(EvidenceKind::Assumed, WHAT, what, 0.1)
        }
    })
}

/// Tells the engine what the communication of a job takes of its hosts.
pub(super) fn share_hosts(options: &mut SimOptions, job: &Job, costs: &[Costs]) {
    for (class, costs) in costs.iter().enumerate() {
        if costs.iter().all(|(_, cost)| cost.host <= 0.0) {
            continue;
        }
        let graph = &job.classes[class].graph;
        let first = options.resources.len();
        let mut resource_of = vec![None; graph.queues.len()];
        for node in graph.node_ids() {
            let queue = graph.queue(node).index();
            if graph.queues[queue].kind != QueueKind::Thread || !is_host_work(graph.kind(node)) {
                continue;
            }
            let resource = *resource_of[queue].get_or_insert_with(|| {
                let name = format!("cores of simulated rank {class}, {}", graph.queues[queue].name);
                options.resources.push(Resource { name, capacity: 1.0 });
                options.resources.len() - 1
            });
            options.demands.push(Demand { class, node, resource, amount: 1.0 });
        }
        for &(node, cost) in costs.iter().filter(|(_, cost)| cost.host > 0.0) {
            for resource in first..options.resources.len() {
                options.demands.push(Demand { class, node, resource, amount: cost.host });
            }
        }
    }
}

fn is_host_work(kind: NodeKind) -> bool {
    matches!(
        kind,
        NodeKind::HostSegment | NodeKind::Optimizer | NodeKind::DataLoad | NodeKind::Copy
    )
}
