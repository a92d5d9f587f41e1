//! A row's number of GPUs, which follows from several of its cells.

use csv::ByteRecord;

use super::bind::Binding;
use super::decode::{Decoder, MOST_GPUS};
use super::fault::Fault;
use super::field::Field;
use super::job::Job;
use super::{places, tres, value};

impl Decoder {
    /// Reads a row into a job, which is empty but for its number.
    pub(super) fn row(&mut self, bindings: &[Binding], row: &ByteRecord, job: &mut Job) {
        let (mut devices, mut factor, mut per_node, mut kind) = (None, Some(1.0), false, None);
        for binding in bindings {
            let Some(cell) = row.get(binding.column).and_then(value::given) else { continue };
            match binding.field {
                Field::GpuShare => {
                    factor = factor.zip(self.share(binding, cell, job.row)).map(|(a, b)| a * b);
                }
                Field::Instances => {
                    factor = factor.zip(self.amount(binding, cell, job.row)).map(|(a, b)| a * b);
                }
                Field::Gpus => {
                    job.gpus = self.gpus(binding, cell, job.row, &mut kind);
                    per_node = binding.per_node;
                }
                Field::Devices => devices = Some(cell),
                _ => self.cell(binding, cell, job),
            }
        }
        if let Some(cell) = devices {
            places::devices(cell, job);
        }
        if let Some(kind) = kind
            && job.gpu_kind.is_empty()
        {
            self.text(kind, &mut job.gpu_kind, job.row);
        }
        let Some(gpus) = job.gpus else { return };
        if per_node {
            let named = u32::try_from(job.placements.len()).ok().filter(|count| *count > 0);
            let nodes = job.nodes.or(named).map(f64::from);
            if nodes.is_none() {
                self.faults.meet(Fault::GpusPerNode, || format!("row {}: {gpus}", job.row));
            }
            factor = factor.zip(nodes).map(|(factor, nodes)| factor * nodes);
        }
        // What a share is of counts nothing if the share cannot be.
        let gpus = factor.map(|factor| gpus * factor);
        if gpus.is_some_and(|gpus| gpus > MOST_GPUS) {
            self.faults.meet(Fault::ImpossibleGpus, || format!("row {}: {gpus:?}", job.row));
        }
        job.gpus = gpus.filter(|gpus| *gpus <= MOST_GPUS);
    }

    fn gpus<'a>(
        &mut self,
        binding: &Binding,
        cell: &'a [u8],
        row: u64,
        kind: &mut Option<&'a [u8]>,
    ) -> Option<f64> {
        let in_words = cell.first().is_some_and(u8::is_ascii_alphabetic);
        let number = match in_words.then(|| tres::read(cell)).flatten() {
            Some(tres) => {
                *kind = tres.kind;
                tres.gpus
            }
            None => self.number(binding, cell, row)?,
        };
        if !(0.0..=MOST_GPUS).contains(&number) {
            self.meet(Fault::ImpossibleGpus, row, cell);
            return None;
        }
        if number == 0.0 {
            self.meet(Fault::NoGpu, row, cell);
        }
        Some(number)
    }

    /// The part of each GPU that a row has.
    fn share(&mut self, binding: &Binding, cell: &[u8], row: u64) -> Option<f64> {
        self.part(binding, cell, row, Fault::GpuShareBeyond)
    }
}
