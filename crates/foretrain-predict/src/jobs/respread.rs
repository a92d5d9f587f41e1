//! A recording taken for a job of another size or class: what its replicas would exchange. How long
//! its step would take, nothing here tells.

use foretrain_core::Bytes;
use foretrain_core::words::counted;
use foretrain_fleet::jobs::Class;

use super::exchange::{Exchanged, ring, traffic};
use super::figure::{Basis, Figure};
use super::graph::Read;

/// As recorded, if class and cNodes are those of the recording; else with the traffic that the class
/// makes of it, and without the times that no longer hold.
pub(super) fn respread(mut read: Read, class: &Figure<Class>, cnodes: &Figure<u32>) -> Read {
    let (Some(class), Some(cnodes)) = (class.value, cnodes.value) else { return read };
    if cnodes == read.world_size && may_be(&read, class) {
        if read.traffic.value.is_none() && read.gradients.value.is_some() {
            read.traffic = exchanged(&read, class, cnodes);
        }
        return read;
    }
    let recorded = counted(read.world_size, "GPU");
    read.traffic = exchanged(&read, class, cnodes);
    let now = format!("{} in class {}", counted(cnodes, "cNode"), class.name());
    let lost = format!("recorded on {recorded}, which do not tell how long {now} would take");
    read.step_time = Figure::missing(lost.clone());
    read.utilisation = Figure::missing(lost);
    read.notes.push(format!(
        "recorded on {recorded}: weight traffic is what {now} would exchange, step time and utilisation are left empty (foretrain predict tells them of the recording)"
    ));
    read
}

/// Whether what was recorded is of this class. Replicas that exchange by collectives are of an
/// all-reduce class; where none were recognised, the user may know better.
fn may_be(read: &Read, class: Class) -> bool {
    match class {
        Class::AllReduceLocal | Class::AllReduceCluster | Class::OneWorkerOneGpu => true,
        Class::OneWorkerManyGpus | Class::PsWorker | Class::Pearl => read.traffic.value.is_none(),
    }
}

/// What a replica exchanges elsewhere. Collectives among replicas all move `(n-1)/n` of their size.
fn exchanged(read: &Read, class: Class, cnodes: u32) -> Figure<Bytes> {
    let part = read.replica_size.max(1);
    if !cnodes.is_multiple_of(part) {
        return Figure::missing(format!(
            "a replica takes {part} GPUs, and {cnodes} are no whole number of replicas"
        ));
    }
    let (before, after) = (read.world_size / part, cnodes / part);
    let all_reduces = matches!(class, Class::AllReduceLocal | Class::AllReduceCluster);
    if after == 1 && class != Class::PsWorker {
        return Figure::new(Bytes::ZERO, Basis::Inferred, "one replica exchanges nothing");
    }
    if let (true, true, Some(bytes)) = (all_reduces, before > 1, read.traffic.value) {
        let scaled = Bytes::from_f64(bytes.as_f64() * ring(after) / ring(before));
        let how = format!(
            "{bytes} among {before} replicas as recorded, by the ring's (n-1)/n among {after}"
        );
        return Figure::new(scaled, Basis::Inferred, how);
    }
    let Some(gradients) = read.gradients.value else {
        let recorded = if before > 1 { "an exchange" } else { "one replica" };
        return Figure::missing(format!("{recorded} was recorded, and not what gradients it has"));
    };
    if read.tables.flat > 0 && !all_reduces {
        return Figure::missing(
            "tables in one flat tensor do not tell the rows that are exchanged",
        );
    }
    let tables = Bytes::new(read.tables.bytes);
    // As for weights: gradients that are too small to hold those of tables are of the rest.
    let (dense, tables) = match gradients >= tables {
        true => (gradients - tables, tables),
        false => (gradients, Bytes::ZERO),
    };
    let touched = Bytes::new(read.tables.touched);
    let (bytes, how) = traffic(class, after, &Exchanged { dense, tables, touched });
    let recorded = if before > 1 { "replicas were" } else { "one replica was" };
    Figure::new(bytes, Basis::Inferred, format!("{recorded} recorded; {how}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::operators::Tables;

    fn read(world_size: u32, traffic: u64, gradients: u64) -> Read {
        let measured = |bytes| Figure::new(Bytes::new(bytes), Basis::Measured, "recorded");
        Read {
            world_size,
            flops: Figure::missing(""),
            memory_access: Figure::missing(""),
            input: Figure::missing(""),
            traffic: measured(traffic),
            gradients: measured(gradients),
            step_time: Figure::new(foretrain_core::Nanos::from_millis(9), Basis::Measured, ""),
            utilisation: Figure::new(0.9, Basis::Measured, ""),
            tables: Tables::default(),
            replica_size: 1,
            notes: Vec::new(),
        }
    }

    fn as_class(read: Read, class: Class, cnodes: u32) -> Read {
        respread(
            read,
            &Figure::new(class, Basis::Given, ""),
            &Figure::new(cnodes, Basis::Given, ""),
        )
    }

    #[test]
    fn traffic_is_of_the_size_that_is_asked_for_and_no_time_is() {
        let grown = as_class(read(2, 200, 100), Class::AllReduceLocal, 8);
        assert_eq!(grown.traffic.value, Some(Bytes::new(350)));
        assert_eq!((grown.step_time.value, grown.utilisation.value), (None, None));
        let served = as_class(read(2, 200, 100), Class::PsWorker, 2);
        assert_eq!(served.traffic.value, Some(Bytes::new(200)));
        assert_eq!(served.step_time.value, None);
        let alone = as_class(read(2, 200, 100), Class::OneWorkerOneGpu, 1);
        assert_eq!((alone.traffic.value, alone.step_time.value), (Some(Bytes::ZERO), None));
        let from_one = as_class(read(1, 0, 100), Class::AllReduceCluster, 4);
        assert_eq!(from_one.traffic.value, Some(Bytes::new(300)));
    }

    #[test]
    fn what_was_recorded_so_stays() {
        for (read, class, cnodes) in [
            (read(2, 200, 100), Class::AllReduceLocal, 2),
            (read(2, 200, 100), Class::AllReduceCluster, 2),
            (read(1, 0, 100), Class::OneWorkerOneGpu, 1),
        ] {
            let traffic = read.traffic.clone();
            let same = as_class(read, class, cnodes);
            assert_eq!((same.traffic, same.step_time.basis), (traffic, Basis::Measured));
            assert!(same.notes.is_empty());
        }
    }
}
