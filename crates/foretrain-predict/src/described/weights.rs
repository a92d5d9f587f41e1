//! Trainable tensors: each counted where it is first used.

use std::collections::HashMap;

use foretrain_ingest::execution_trace::{Operand, Operator};

/// Where a tensor lies.
type Place = (i64, i64);

/// Trainable tensors that were met.
#[derive(Debug, Default)]
pub(super) struct Weights {
    met: HashMap<Place, u64>,
    /// Copies in another number format, and what they are of.
    copies: HashMap<i64, Place>,
}

impl Weights {
    /// Elements of a tensor that is met for the first time.
    pub(super) fn meet(&mut self, operand: &Operand) -> Option<u64> {
        let place = self.place(operand);
        match self.met.insert(place, operand.elements) {
            Some(before) if before == operand.elements => None,
            _ => Some(operand.elements),
        }
    }

    fn place(&self, operand: &Operand) -> Place {
        let own = (operand.storage, operand.offset);
        self.copies.get(&operand.storage).copied().unwrap_or(own)
    }

    /// An operator that does not work on the sample made this.
    pub(super) fn made(&mut self, operator: &Operator, output: &Operand) {
        let inputs: Vec<&Operand> = operator.inputs.iter().flatten().collect();
        match inputs[..] {
            [source, ..] if is_cast(&operator.name) && source.elements == output.elements => {
                let place = self.place(source);
                if place.0 != output.storage {
                    self.copies.insert(output.storage, place);
                }
            }
            // A view of a copy is the copy.
            [source, ..] if source.storage == output.storage => {}
            _ => {
                self.copies.remove(&output.storage);
            }
        }
    }

    /// The sample is written here: what was copied is gone.
    pub(super) fn overwrite(&mut self, output: &Operand) {
        self.copies.remove(&output.storage);
    }
}

/// As autocast does with weights.
fn is_cast(name: &str) -> bool {
    matches!(name, "aten::to" | "aten::_to_copy")
}
