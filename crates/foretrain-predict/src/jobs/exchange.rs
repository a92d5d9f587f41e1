//! Weights and gradients that replicas exchange.

use foretrain_core::Bytes;
use foretrain_cost::bus_factor;
use foretrain_fleet::jobs::Class;
use foretrain_graph::CollectiveKind;

/// What one replica has to exchange per step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Exchanged {
    /// Gradients of dense weights.
    pub(super) dense: Bytes,
    /// Gradients of whole embedding tables.
    pub(super) tables: Bytes,
    /// Embedding rows that the step looks up.
    pub(super) touched: Bytes,
}

/// Bytes over payload that a replica of a ring sends, in an all-reduce.
pub(super) fn ring(cnodes: u32) -> f64 {
    bus_factor(CollectiveKind::AllReduce, cnodes)
}

fn times(bytes: Bytes, factor: f64) -> Bytes {
    Bytes::from_f64(bytes.as_f64() * factor)
}

/// Bytes that a replica sends and receives, and how that is counted.
pub(super) fn traffic(class: Class, cnodes: u32, of: &Exchanged) -> (Bytes, &'static str) {
    let whole = of.dense + of.tables;
    let sparse = of.dense + of.touched;
    match class {
        Class::OneWorkerOneGpu => (Bytes::ZERO, "one GPU exchanges nothing"),
        Class::OneWorkerManyGpus | Class::PsWorker => (
            sparse + sparse,
            "gradients sent and parameters received; of embeddings the rows of the step",
        ),
        Class::AllReduceLocal | Class::AllReduceCluster => (
            times(whole, 2.0 * ring(cnodes)),
            "ring: 2 (n-1)/n of the gradients sent, and received",
        ),
        Class::Pearl => (
            times(sparse, 2.0 * ring(cnodes)),
            "ring: 2 (n-1)/n of the dense gradients and of the step's embedding rows sent, and received",
        ),
    }
}

/// The gradients that a replica exchanges when it sends and receives so much.
pub(super) fn gradients(class: Class, cnodes: u32, both_ways: Bytes) -> Option<Bytes> {
    let per_byte = match class {
        Class::OneWorkerOneGpu => return None,
        Class::OneWorkerManyGpus | Class::PsWorker => 2.0,
        Class::AllReduceLocal | Class::AllReduceCluster | Class::Pearl => 2.0 * ring(cnodes),
    };
    (per_byte > 0.0).then(|| times(both_ways, 1.0 / per_byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_exchanged_is_found_again() {
        let of = Exchanged { dense: Bytes::new(102_000_000), ..Exchanged::default() };
        for (class, cnodes, bytes) in [
            (Class::AllReduceLocal, 8, 357_000_000),
            (Class::AllReduceCluster, 8, 357_000_000),
            (Class::Pearl, 4, 306_000_000),
            (Class::PsWorker, 16, 204_000_000),
        ] {
            let (sent, _) = traffic(class, cnodes, &of);
            assert_eq!(sent, Bytes::new(bytes), "{class:?}");
            assert_eq!(gradients(class, cnodes, sent), Some(of.dense), "{class:?}");
        }
        assert_eq!(traffic(Class::OneWorkerOneGpu, 1, &of).0, Bytes::ZERO);
        assert_eq!(gradients(Class::AllReduceLocal, 1, Bytes::new(1)), None);
    }

    #[test]
    fn only_classes_for_embeddings_leave_tables_where_they_are() {
        let of = Exchanged {
            dense: Bytes::new(8),
            tables: Bytes::new(1_000_000),
            touched: Bytes::new(80),
        };
        assert_eq!(traffic(Class::Pearl, 2, &of).0, Bytes::new(176));
        assert_eq!(traffic(Class::AllReduceLocal, 2, &of).0, Bytes::new(2_000_016));
    }
}
