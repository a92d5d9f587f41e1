//! Measured steps as a table with commas, one row for each.

use foretrain_core::{InputError, Result, suggest};

use super::measured::{MeasuredSteps, Raw};

const COLUMNS: [&str; 9] = [
    "layout",
    "gpus",
    "batch",
    "step_time",
    "cluster",
    "model",
    "sequence",
    "software",
    "precision",
];
const NEEDED: usize = 4;

/// Reads the text of a table.
///
/// # Errors
/// If a column is missing or not known, or a row is none, with its line.
pub(super) fn parse(text: &str) -> Result<MeasuredSteps> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .flexible(false)
        .from_reader(text.as_bytes());
    let titles = reader.headers().map_err(|error| broken(&error))?.clone();
    let columns = titles.iter().map(column).collect::<Result<Vec<usize>>>()?;
    if let Some(missing) =
        COLUMNS[..NEEDED].iter().enumerate().find(|(at, _)| !columns.contains(at))
    {
        return Err(InputError::new(format!("the table has no column {}", missing.1))
            .at("line 1")
            .hint(format!("its first line names the columns: {}", COLUMNS[..NEEDED].join(","))));
    }
    let mut found = MeasuredSteps::default();
    for record in reader.records() {
        let record = record.map_err(|error| broken(&error))?;
        let line = record.position().map_or(0, csv::Position::line);
        let placed = |error: InputError| error.at(format!("line {line}"));
        let mut raw = Raw::default();
        for (&column, cell) in columns.iter().zip(&record).filter(|(_, cell)| !cell.is_empty()) {
            set(&mut raw, &mut found.cluster, COLUMNS[column], cell).map_err(placed)?;
        }
        found.steps.push(raw.check(format!("line {line}"))?);
    }
    found.checked()
}

fn column(title: &str) -> Result<usize> {
    COLUMNS.iter().position(|known| title.eq_ignore_ascii_case(known)).ok_or_else(|| {
        let hint = suggest::nearest(title, COLUMNS)
            .map_or_else(|| COLUMNS.join(", "), |near| format!("did you mean {near}?"));
        InputError::new(format!("unknown column {title:?}")).at("line 1").hint(hint)
    })
}

fn set(raw: &mut Raw, cluster: &mut Option<String>, column: &str, cell: &str) -> Result<()> {
    let text = || Some(cell.to_owned());
    match column {
        // A comma would end the cell.
        "layout" => raw.layout = cell.replace(';', ",").parse()?,
        "gpus" => raw.gpus = number(column, cell)?,
        "batch" => raw.batch = number(column, cell)?,
        "sequence" => raw.sequence = Some(number(column, cell)?),
        "step_time" => raw.step_time = cell.parse()?,
        "model" => raw.model = text(),
        "software" => raw.software = text(),
        "precision" => raw.precision = text(),
        _ => match cluster {
            Some(known) if known != cell => {
                return Err(InputError::new(format!(
                    "measured on {cell}, and rows before on {known}"
                ))
                .hint("keep one file for each cluster"));
            }
            _ => *cluster = text(),
        },
    }
    Ok(())
}

fn number<T: std::str::FromStr>(column: &str, cell: &str) -> Result<T> {
    cell.parse()
        .map_err(|_| InputError::new(format!("{column}: expected a number, found {cell:?}")))
}

fn broken(error: &csv::Error) -> InputError {
    let line = error.position().map_or(1, csv::Position::line);
    let placed = InputError::new(match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} cells where the first line names {expected_len} columns")
        }
        _ => "not a table with commas".to_owned(),
    });
    placed
        .at(format!("line {line}"))
        .hint("put a layout with commas in quotes, or write it with semicolons: tp=8;pp=4")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "layout,gpus,batch,step_time,sequence\n\
                         tp=8;pp=4,64,512,12.3s,2048\n\
                         \"tp=8,pp=8\",64,512,13.1 s,\n";

    #[test]
    fn quotes_and_semicolons_keep_a_layout_together() {
        let found = parse(TABLE).unwrap();
        let [first, second] = &found.steps[..] else { panic!("two steps") };
        assert_eq!((first.layout.pipeline, first.sequence), (4, Some(2048)));
        assert_eq!((second.layout.pipeline, second.sequence), (8, None));
        assert_eq!(second.place, "line 3");
    }

    #[test]
    fn mistakes_have_their_line() {
        for (from, to, line, said) in [
            ("step_time", "step time", "line 1", "did you mean step_time?"),
            (",step_time", ",sequence", "line 1", "no column step_time"),
            ("tp=8;pp=4", "tp=8,pp=4", "line 2", "quotes"),
            ("12.3s", "fast", "line 2", ""),
            ("12.3s", "", "line 2", "unit"),
            (",64,", ",many,", "line 2", "gpus: expected a number"),
            (",512,", ",1e400,", "line 2", "batch: expected a number"),
        ] {
            let error = parse(&TABLE.replacen(from, to, 1)).unwrap_err();
            let text = format!("{error} {}", error.hints().join(" "));
            assert!(text.contains(line) && text.contains(said), "{to}: {text}");
        }
        assert!(parse("").unwrap_err().hints().len() == 1);
        assert!(parse("layout,gpus,batch,step_time\n").is_err());
    }
}
