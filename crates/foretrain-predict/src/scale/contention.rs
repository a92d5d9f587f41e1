//! Communication by CPU libraries takes processor time from the host work of its rank.
//!
//! Each host thread has a resource of capacity 1: the cores of its rank. Its own work takes all of
//! it, a collective the part that its library's thread keeps busy on the average. Both get equal
//! parts or what they need, as from a fair scheduler: a thread that mostly waits for packets gets
//! its time at once, and computing slows down by as much. Threads of one rank do not take from each
//! other here: what they do to each other is in the recording already.

use foretrain_core::{Evidence, EvidenceKind, Nanos};
use foretrain_graph::{Job, NodeKind, QueueKind};
use foretrain_hardware::{Cluster, DeviceKind};
use foretrain_sim::{Demand, Resource, SimOptions};

use super::cost::Costs;

/// Part of its rank's `cores` that a collective of duration `time` keeps busy, if it takes `busy` of
/// a processor's time.
pub(super) fn host_use(busy: Nanos, time: Nanos, cores: f64) -> f64 {
    if time <= Nanos::ZERO || time == Nanos::MAX {
        return 0.0;
    }
    (busy.clamp_positive().nanos() as f64 / (time.nanos() as f64 * cores)).min(1.0)
}

/// What is taken for granted of a CPU cluster's cores.
pub(super) fn contention_evidence(cluster: &Cluster, cores: Option<f64>) -> Option<Evidence> {
    const WHAT: &str = "communication beside computing";
    if cluster.node.device.kind != DeviceKind::Cpu {
        return None;
    }
    Some(match cores {
        Some(cores) => {
            let measured =
                cluster.collectives.as_ref().is_some_and(|own| !own.processors.is_empty());
            let (kind, how) = if measured {
                (EvidenceKind::Measured, "measured with the cluster's collectives")
            } else {
                (EvidenceKind::Inferred, "as on links without limit")
            };
            let what = format!(
                "takes its processor time, {how}, from the {cores} core(s) that a rank has"
            );
            Evidence::new(kind, WHAT, what, 0.1)
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

#[cfg(test)]
mod tests {
    use foretrain_core::{Bytes, Estimate};
    use foretrain_cost::{CollectiveCall, Fabric, GroupPlacement, host_time};
    use foretrain_graph::{CollectiveKind, Node, NodeId, StepGraph};
    use foretrain_hardware::Catalogue;
    use foretrain_sim::simulate;

    use super::super::cost::Cost;
    use super::super::links::LinkUse;
    use super::*;

    /// Computing and a collective, 10 ms each, start together.
    fn ends(host: f64) -> (Nanos, Nanos) {
        let mut graph = StepGraph::new();
        let main = graph.add_queue("main", QueueKind::Thread);
        let sync = graph.add_queue("sync", QueueKind::Thread);
        let name = graph.names.intern("work");
        let time = Nanos::from_millis(10);
        graph.add_node(Node::new(NodeKind::HostSegment, name, main, time));
        let node = Node::new(NodeKind::Collective, name, sync, time);
        let reduce = graph.add_node(Node { collective: Some(CollectiveKind::AllReduce), ..node });
        let links = LinkUse::default();
        let time = Estimate::exact(time);
        let cost = Cost { time, wait: Nanos::ZERO, ratio: 1.0, ranks: 2, links, host };
        let job = Job::uniform(graph, 1);
        let mut options = SimOptions::iterations(1);
        share_hosts(&mut options, &job, &[vec![(reduce, cost)]]);
        let timeline = simulate(&job, &options).expect("a job");
        let end = |id: NodeId| timeline.classes[0].end[timeline.classes[0].row(0, id)];
        (end(NodeId::new(0)), end(reduce))
    }

    #[test]
    fn a_thread_that_mostly_waits_slows_computing_by_its_part() {
        let ms = Nanos::from_millis;
        assert_eq!(ends(0.0), (ms(10), ms(10)));
        // A quarter for 10 ms leaves 2.5 ms of work.
        assert_eq!(ends(0.25), (Nanos::from_micros(12_500), ms(10)));
        // All of it: half each until both are done.
        assert_eq!(ends(1.0), (ms(20), ms(20)));
    }

    #[test]
    fn half_a_core_is_twice_as_busy() {
        let mut cluster = Catalogue::builtin().cluster("dgx-a100").expect("known");
        let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(8));
        let fabric = |cluster: &Cluster| {
            Fabric::for_group(cluster, &GroupPlacement::contiguous(16)).expect("fits")
        };
        assert_eq!(host_time(&call, &fabric(&cluster)), Nanos::ZERO);
        cluster.node.device.kind = DeviceKind::Cpu;
        let busy = host_time(&call, &fabric(&cluster));
        let of = |cores: f64| host_use(busy, Nanos::from_millis(100), cores);
        assert!(of(1.0) > 0.0 && (of(0.5) / of(1.0) - 2.0).abs() < 1e-9, "{}", of(1.0));
        assert_eq!(of(1e-6), 1.0);
    }
}
