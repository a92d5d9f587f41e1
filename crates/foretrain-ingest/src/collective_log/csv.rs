//! Tables with commas: the CSV files of rccl-tests, and text tables that went through a
//! spreadsheet.

use foretrain_core::DType;

use super::columns::{Column, Columns};
use super::draft::{DraftRow, Figures};
use super::kind::kind_of;
use super::long::Record;
use super::number::integer;
use super::row::{figure, reduction, root};

/// A CSV table under its header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    columns: Columns,
    /// All columns; those of text tables begin with the size.
    all: Vec<Column>,
}

/// What a line gives.
#[derive(Clone, Debug)]
pub(super) enum CsvRow {
    /// One placement. `shifted`: the header lacked a column, which is known and was mended.
    Long { record: Box<Record>, shifted: bool },
    /// A whole row.
    Wide(Box<DraftRow>),
}

impl Header {
    /// The header of a CSV table; `None` if the line is none.
    pub(super) fn of(line: &str) -> Option<Self> {
        if !line.contains(',') || !line.to_ascii_lowercase().contains("busbw") {
            return None;
        }
        let titles = fields(line);
        let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
        let columns = Columns::new(&titles)?;
        Some(Self { columns, all: titles.iter().map(|title| Column::titled(title)).collect() })
    }

    /// The row on a line; `None` if it is none.
    pub(super) fn row(&self, line: &str) -> Option<CsvRow> {
        let fields = fields(line);
        let mut all = self.all.clone();
        // rccl-tests with MPI once wrote the nodes into every row, but not into the header.
        let shifted = fields.len() == all.len() + 1 && !all.contains(&Column::Nodes);
        if shifted {
            let ranks = all.iter().position(|column| *column == Column::Ranks)?;
            all.insert(ranks, Column::Nodes);
        }
        if fields.len() != all.len() {
            return None;
        }
        self.read(&all, &fields, shifted)
    }

    /// Whether a line that is no row has so many commas that it was meant to be one.
    pub(super) fn resembles(&self, line: &str) -> bool {
        line.matches(',').count() * 2 > self.all.len()
    }

    fn read(&self, all: &[Column], fields: &[String], shifted: bool) -> Option<CsvRow> {
        let mut row = DraftRow::default();
        let (mut placements, mut in_place) = (Vec::new(), None);
        let (mut ranks, mut nodes, mut per_rank) = (None, None, 1);
        let mut has_size = false;
        for (column, field) in all.iter().zip(fields) {
            let small = || integer(field).and_then(|n| u32::try_from(n).ok());
            match column {
                Column::Size => {
                    row.size = integer(field)?;
                    has_size = true;
                }
                Column::Count => row.count = integer(field),
                Column::Type => row.dtype = DType::parse(field),
                Column::Redop => row.redop = reduction(field).unwrap_or_default(),
                Column::Root => row.root = root(field).unwrap_or_default(),
                Column::Name => row.kind = kind_of(field),
                Column::InPlace => in_place = Some(integer(field)? != 0),
                Column::Ranks => ranks = Some(small()?),
                Column::Nodes => nodes = Some(small()?),
                Column::DevicesPerRank => per_rank = small()?,
                Column::Time | Column::AlgBw | Column::BusBw | Column::Wrong => {
                    figure(&mut placements, *column, field, self.columns.deviation)?;
                }
                Column::TimeStamp | Column::Cycle | Column::Other => {}
            }
        }
        if !has_size {
            return None;
        }
        let mut placements = placements.into_iter();
        let first: Figures = placements.next()?;
        if let Some(in_place) = in_place {
            let ranks = ranks.and_then(|ranks| ranks.checked_mul(per_rank));
            let record = Record { row, in_place, figures: first, ranks, nodes };
            return Some(CsvRow::Long { record: Box::new(record), shifted });
        }
        row.out_of_place = Some(first);
        row.in_place = placements.next();
        Some(CsvRow::Wide(Box::new(row)))
    }
}

/// The fields of a line, quotes and the blanks around them undone.
pub(crate) fn fields(line: &str) -> Vec<String> {
    // Lines come out of logs one by one, so each is a table of its own.
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .trim(csv::Trim::All)
        .from_reader(line.as_bytes());
    let row = reader.records().next().and_then(Result::ok).unwrap_or_default();
    row.iter().map(|field| field.trim().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_headers_of_rccl_tests_give_the_same_record() {
        let row = r#"0,"AllReduce",1,8,8,1,1048576,"float","sum",0,55.66,18.84,32.97,"0""#;
        for (header, was_shifted) in [
            (
                "numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong",
                true,
            ),
            (
                "numCycle, name, nodes, ranks, ranksPerNode, gpusPerRank, size, type, redop, inPlace, time, algBw, busBw, #wrong",
                false,
            ),
        ] {
            let header = Header::of(header).unwrap();
            let Some(CsvRow::Long { record, shifted }) = header.row(row) else {
                panic!("no record")
            };
            assert_eq!((record.ranks, record.nodes, record.row.size), (Some(8), Some(1), 1 << 20));
            assert_eq!((record.in_place, shifted), (false, was_shifted));
            assert_eq!(record.figures.time.value, 55.66);
        }
    }

    #[test]
    fn other_lines_are_no_rows() {
        let header = Header::of("size,count,type,redop,root,time,algbw,busbw,#wrong").unwrap();
        assert!(matches!(
            header.row("8,2,float,sum,-1,12.90,0.00,0.00,0"),
            Some(CsvRow::Wide(row)) if row.count == Some(2)
        ));
        for line in ["", "8,2,float", "a,b,c,d,e,f,g,h,i", "8,2,float,sum,-1,fast,0.00,0.00,0"] {
            assert!(header.row(line).is_none(), "{line}");
        }
        assert!(Header::of("size,name,what").is_none());
        assert!(Header::of("# size count type time algbw busbw").is_none());
    }
}
