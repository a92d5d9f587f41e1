//! Typed access to the columns of a decoded batch.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int32Type, Int64Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, DictionaryArray, PrimitiveArray, RecordBatch, StringArray};
use foretrain_core::{NameId, Names, Result};

use super::{Limits, damaged};
use crate::attributes::Column;

/// Memory that may still be taken.
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// A small file may unpack to 64 MiB; beyond that the size of the file counts.
    pub(super) fn new(file_bytes: usize, limits: &Limits) -> Self {
        let earned = (64 << 20) + (file_bytes as u64).saturating_mul(512);
        Self { left: earned.min(limits.memory_bytes) }
    }

    pub(super) fn take(&mut self, rows: usize, width: usize) -> Result<()> {
        let wanted = (rows as u64).saturating_mul(width as u64);
        self.left = self.left.checked_sub(wanted).ok_or_else(|| {
            damaged("it would unpack to more memory than allowed")
                .hint("for a file you trust, load it with wider limits")
        })?;
        Ok(())
    }
}

/// One batch. Column types were fixed by the schema, so a mismatch means a damaged file.
pub(super) struct Columns<'a> {
    batch: &'a RecordBatch,
}

impl<'a> Columns<'a> {
    pub(super) fn new(batch: &'a RecordBatch) -> Self {
        Self { batch }
    }

    fn name(&self, index: usize) -> String {
        let schema = self.batch.schema_ref();
        schema.fields().get(index).map_or(String::new(), |f| f.name().escape_debug().to_string())
    }

    fn optional<T: ArrowPrimitiveType>(&self, index: usize) -> Result<&'a PrimitiveArray<T>> {
        let array = self.batch.columns().get(index).and_then(|a| a.as_primitive_opt::<T>());
        array.ok_or_else(|| damaged(format!("column \"{}\" is of another type", self.name(index))))
    }

    fn required<T: ArrowPrimitiveType>(&self, index: usize) -> Result<&'a [T::Native]> {
        let array = self.optional::<T>(index)?;
        if array.null_count() > 0 {
            return Err(self.empty_cell(index));
        }
        Ok(array.values())
    }

    fn empty_cell(&self, index: usize) -> foretrain_core::InputError {
        damaged(format!("column \"{}\" has an empty cell", self.name(index)))
    }

    pub(super) fn u16(&self, index: usize) -> Result<&'a [u16]> {
        self.required::<UInt16Type>(index)
    }
    pub(super) fn u32(&self, index: usize) -> Result<&'a [u32]> {
        self.required::<UInt32Type>(index)
    }
    pub(super) fn i32(&self, index: usize) -> Result<&'a [i32]> {
        self.required::<Int32Type>(index)
    }
    pub(super) fn i64(&self, index: usize) -> Result<&'a [i64]> {
        self.required::<Int64Type>(index)
    }
    pub(super) fn optional_u32(
        &self,
        index: usize,
    ) -> Result<impl Iterator<Item = Option<u32>> + 'a> {
        Ok(self.optional::<UInt32Type>(index)?.iter())
    }
    pub(super) fn optional_u64(
        &self,
        index: usize,
    ) -> Result<impl Iterator<Item = Option<u64>> + 'a> {
        Ok(self.optional::<UInt64Type>(index)?.iter())
    }

    /// Keys and distinct values of a text column.
    fn text(&self, index: usize) -> Result<(&'a DictionaryArray<Int32Type>, &'a StringArray)> {
        let array = self.batch.columns().get(index);
        let array = array.and_then(|a| a.as_dictionary_opt::<Int32Type>());
        array
            .and_then(|array| Some((array, array.values().as_string_opt::<i32>()?)))
            .ok_or_else(|| damaged(format!("column \"{}\" is not text", self.name(index))))
    }

    /// Calls `each` with every cell: its position among the distinct values and its text.
    fn each_text(
        &self,
        index: usize,
        mut each: impl FnMut(Option<(usize, &'a str)>) -> Result<()>,
    ) -> Result<()> {
        let (array, values) = self.text(index)?;
        for key in array.keys() {
            let Some(key) = key else {
                each(None)?;
                continue;
            };
            let key = usize::try_from(key).ok().filter(|&key| key < values.len());
            let key = key.ok_or_else(|| {
                damaged(format!("column \"{}\" points beyond its words", self.name(index)))
            })?;
            each(Some((key, values.value(key))))?;
        }
        Ok(())
    }

    /// Interns a text column, each distinct name once, in order of first appearance.
    pub(super) fn names(
        &self,
        index: usize,
        names: &mut Names,
        out: &mut Vec<NameId>,
    ) -> Result<()> {
        let mut known: Vec<Option<NameId>> = vec![None; self.text(index)?.1.len()];
        self.each_text(index, |cell| {
            let (key, text) = cell.ok_or_else(|| self.empty_cell(index))?;
            out.push(*known[key].get_or_insert_with(|| names.intern(text)));
            Ok(())
        })
    }

    pub(super) fn optional_words<W: Copy>(
        &self,
        index: usize,
        what: &str,
        parse: fn(&str) -> Option<W>,
        out: &mut Vec<Option<W>>,
    ) -> Result<()> {
        let mut known: Vec<Option<W>> = vec![None; self.text(index)?.1.len()];
        self.each_text(index, |cell| {
            let Some((key, text)) = cell else {
                out.push(None);
                return Ok(());
            };
            if known[key].is_none() {
                known[key] = parse(text);
            }
            let word = known[key]
                .ok_or_else(|| damaged(format!("unknown {what} \"{}\"", text.escape_debug())))?;
            out.push(Some(word));
            Ok(())
        })
    }

    pub(super) fn words<W: Copy>(
        &self,
        index: usize,
        what: &str,
        parse: fn(&str) -> Option<W>,
        out: &mut Vec<W>,
    ) -> Result<()> {
        let mut cells = Vec::with_capacity(self.batch.num_rows());
        self.optional_words(index, what, parse, &mut cells)?;
        for cell in cells {
            out.push(cell.ok_or_else(|| self.empty_cell(index))?);
        }
        Ok(())
    }

    pub(super) fn extend_attribute(
        &self,
        index: usize,
        column: &mut Column,
        budget: &mut Budget,
    ) -> Result<()> {
        match column {
            Column::I64(cells) => cells.extend(self.optional::<Int64Type>(index)?.iter()),
            Column::F64(cells) => cells.extend(self.optional::<Float64Type>(index)?.iter()),
            Column::Bool(cells) => {
                let array = self.batch.columns().get(index).and_then(|a| a.as_boolean_opt());
                let array = array.ok_or_else(|| {
                    damaged(format!("column \"{}\" is not boolean", self.name(index)))
                })?;
                cells.extend(array.iter());
            }
            Column::Str(cells) => self.each_text(index, |cell| {
                let text = cell.map(|(_, text)| text);
                budget.take(1, text.map_or(0, str::len))?;
                cells.push(text.map(Into::into));
                Ok(())
            })?,
        }
        Ok(())
    }
}
