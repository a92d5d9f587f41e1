//! Tables of jobs in Parquet files.

use std::sync::Arc;

use arrow_array::builder::{Float64Builder, ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, Decimal128Array, DurationMicrosecondArray, Float64Array, RecordBatch, StringArray,
    StructArray, Time32SecondArray, TimestampMillisecondArray,
};
use arrow_schema::{DataType, Field};
use foretrain_core::Nanos;
use foretrain_fleet::jobs::{Fault, Job, Table, TableOptions, TableRead};
use parquet::arrow::ArrowWriter;

fn packed<const N: usize>(columns: [(&str, ArrayRef); N]) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter(columns).expect("columns of one length");
    let mut file = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), None).expect("known types");
    writer.write(&batch).expect("memory takes it");
    writer.close().expect("memory takes it");
    file
}

fn read<const N: usize>(columns: [(&str, ArrayRef); N]) -> (Vec<Job>, TableRead) {
    let directory = tempfile::tempdir().expect("a place for files");
    let path = directory.path().join("jobs.parquet");
    std::fs::write(&path, packed(columns)).expect("a place for files");
    let mut jobs = Vec::new();
    let table = Table::open(&path, &TableOptions::default()).expect("a table");
    let read = table.for_each(|job| jobs.push(job.clone()));
    (jobs, read)
}

/// Timestamps bring their unit, only columns that are read are decoded, and nothing else differs.
#[test]
fn parquet_says_what_text_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.parquet");
    let submit = TimestampMillisecondArray::from(vec![
        Some(1_700_000_000_000),
        None,
        Some(1_700_000_600_000),
    ]);
    let columns: [(&str, ArrayRef); 4] = [
        ("job_id", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
        ("comment", Arc::new(StringArray::from(vec!["x", "y", "z"]))),
        ("submitted_at", Arc::new(submit)),
        ("num_gpus", Arc::new(Float64Array::from(vec![0.5, 8.0, 1.0]))),
    ];
    let file = packed(columns);
    std::fs::write(&path, &file).unwrap();
    let table = Table::open(&path, &TableOptions::default()).unwrap();
    assert_eq!(table.unused(), ["comment"]);
    let mut seen = Vec::new();
    let rows = table.for_each(|job| seen.push((job.id.clone(), job.submit, job.gpus))).rows;
    let at = |seconds: f64| Some(Nanos::from_secs_f64(seconds));
    assert_eq!(rows, 3);
    assert_eq!(seen[0], ("a".to_owned(), at(1.7e9), Some(0.5)));
    assert_eq!(seen[1], ("b".to_owned(), None, Some(8.0)));
    assert_eq!(seen[2], ("c".to_owned(), at(1_700_000_600.0), Some(1.0)));

    std::fs::write(&path, &file[..file.len() / 2]).unwrap();
    assert!(Table::open(&path, &TableOptions::default()).is_err(), "half a file is refused");
}

/// Arrow keeps lengths of time as whole numbers whose unit stands beside, and decimals as whole
/// numbers with a place of the point.
#[test]
fn lengths_of_time_have_the_unit_of_their_type() {
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let seconds = |jobs: &[Job]| -> Vec<Option<f64>> {
        jobs.iter().map(|job| job.duration.map(Nanos::secs_f64)).collect()
    };
    let micros = DurationMicrosecondArray::from(vec![90_000_000, 5_400_000_000]);
    let (jobs, _) = read([("job_id", ids.clone()), ("duration", Arc::new(micros))]);
    assert_eq!(seconds(&jobs), [Some(90.0), Some(5400.0)]);
    let of_day = Time32SecondArray::from(vec![90, 5400]);
    let (jobs, _) = read([("job_id", ids.clone()), ("duration", Arc::new(of_day))]);
    assert_eq!(seconds(&jobs), [Some(90.0), Some(5400.0)]);
    let decimals =
        Decimal128Array::from(vec![9_050, 540_000]).with_precision_and_scale(9, 2).unwrap();
    let (jobs, _) = read([("job_id", ids), ("duration_s", Arc::new(decimals))]);
    assert_eq!(seconds(&jobs), [Some(90.5), Some(5400.0)]);
}

/// Naming a column does not make its type forgotten.
#[test]
fn a_named_column_keeps_the_unit_of_its_type() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("jobs.parquet");
    let micros = DurationMicrosecondArray::from(vec![90_000_000, 5_400_000_000]);
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    std::fs::write(&path, packed([("job_id", ids), ("len", Arc::new(micros))])).unwrap();
    let open = |hint: &str| {
        let columns = vec![hint.parse().unwrap()];
        Table::open(&path, &TableOptions { schema: None, columns })
    };
    for hint in ["duration=len", "duration=len:us"] {
        let mut seconds = Vec::new();
        open(hint).unwrap().for_each(|job| seconds.push(job.duration.map(Nanos::secs_f64)));
        assert_eq!(seconds, [Some(90.0), Some(5400.0)]);
    }
    let error = open("duration=len:h").err().unwrap().to_string();
    assert!(error.contains("of a type in us, not h"), "{error}");
}

#[test]
fn usual_codecs_are_unpacked() {
    use parquet::basic::{Compression, GzipLevel, ZstdLevel};
    use parquet::file::properties::WriterProperties;
    for codec in [
        Compression::SNAPPY,
        Compression::ZSTD(ZstdLevel::default()),
        Compression::GZIP(GzipLevel::default()),
        Compression::LZ4_RAW,
    ] {
        let ids: ArrayRef = Arc::new(StringArray::from(vec!["a"; 1000]));
        let runs: ArrayRef = Arc::new(Float64Array::from(vec![60.0; 1000]));
        let batch = RecordBatch::try_from_iter([("job_id", ids), ("duration_s", runs)]).unwrap();
        let properties = WriterProperties::builder().set_compression(codec).build();
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobs.parquet");
        std::fs::write(&path, file).unwrap();
        let read = Table::open(&path, &TableOptions::default()).unwrap().for_each(|_| ());
        assert_eq!((read.given, read.cut), (1000, None), "{codec}");
    }
}

#[test]
fn lists_are_read_and_structs_are_said_to_be_left_out() {
    let mut machines = ListBuilder::new(StringBuilder::new());
    machines.append_value([Some("m1"), Some("m2")]);
    machines.append_null();
    let parts: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0]));
    let nested =
        StructArray::from(vec![(Arc::new(Field::new("hours", DataType::Float64, false)), parts)]);
    let mut counts = ListBuilder::new(Float64Builder::new());
    counts.append_value([Some(0.0)]);
    counts.append_value([Some(3.0)]);
    let (jobs, read) = read([
        ("job_id", Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef),
        // Which GPUs, or how many? A list is no number.
        ("gpus", Arc::new(counts.finish())),
        ("duration", Arc::new(nested)),
        ("machine", Arc::new(machines.finish())),
    ]);
    let on: Vec<&str> = jobs[0].placements.iter().map(|placed| placed.machine.as_str()).collect();
    assert_eq!((on, jobs[1].placements.len()), (vec!["m1", "m2"], 0));
    assert_eq!((jobs[0].duration, jobs[0].gpus), (None, None));
    assert_eq!(read.faults.count(Fault::UnreadType), 2);
}
