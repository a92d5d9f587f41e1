//! What a collective takes of its ranks' own processors.

use foretrain_core::{Bandwidth, Nanos};

use super::fabric::Fabric;
use super::time::{CollectiveCall, best};

/// CPU time that one rank spends on moving and summing the data of `call`; zero where devices do.
///
/// What was measured on the cluster holds. Where nothing was: a CPU library that no link holds up is
/// limited by its own thread alone, so it is the time of transfer and reduction on links without
/// limit, and tables measured on such links calibrate it. What a call's messages take of a processor
/// is not in that.
pub fn host_time(call: &CollectiveCall, fabric: &Fabric) -> Nanos {
    if fabric.ranks <= 1 || fabric.library.is_nccl_like() {
        return Nanos::ZERO;
    }
    let measured = fabric.calibrated.as_deref().and_then(|own| {
        let (bytes, many_nodes) = (call.bytes.as_f64(), fabric.nodes > 1);
        own.processors.at(call.kind, bytes, fabric.ranks, many_nodes, fabric.library)
    });
    if let Some(ns) = measured {
        return Nanos::from_nanos_f64(ns);
    }
    let mut unlimited = fabric.clone();
    unlimited.intra.bandwidth = Bandwidth::from_bytes_per_sec(f64::INFINITY);
    unlimited.inter.bandwidth = Bandwidth::from_bytes_per_sec(f64::INFINITY);
    let best = best(call, &unlimited, unlimited.known());
    Nanos::from_nanos_f64(best.transfer + best.reduction)
}

#[cfg(test)]
mod tests {
    use foretrain_core::Bytes;
    use foretrain_graph::CollectiveKind;
    use foretrain_hardware::NicKind;

    use super::*;
    use crate::collective::{InterLink, Library};

    fn ethernet(ranks: u32, gbit: f64) -> Fabric {
        let bandwidth = Bandwidth::from_gbit_per_sec(gbit);
        Fabric {
            ranks,
            nodes: ranks,
            inter: InterLink::new(NicKind::Ethernet, bandwidth),
            library: Library::Gloo,
            ..Fabric::single()
        }
    }

    /// Two ranks move 8 MiB in all and sum half of it: 8.05 ms at 1.2 and 4 GB/s. Measured at 8.1
    /// ms of CPU time on links without shaping.
    #[test]
    fn processors_work_as_long_on_any_link() {
        let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(8));
        let slow = host_time(&call, &ethernet(2, 0.05));
        assert_eq!(slow, host_time(&call, &ethernet(2, 100.0)));
        assert!((slow.millis_f64() - 8.04).abs() < 0.02, "{slow}");
        assert_eq!(host_time(&call, &ethernet(1, 1.0)), Nanos::ZERO);
    }

    #[test]
    fn devices_spare_the_processors() {
        let call = CollectiveCall::new(CollectiveKind::AllReduce, Bytes::from_mib(8));
        let fabric = Fabric { ranks: 8, ..Fabric::single() };
        assert_eq!(host_time(&call, &fabric), Nanos::ZERO);
    }
}
