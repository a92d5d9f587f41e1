//! A million rows: read and characterised, and audited.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use foretrain_core::Ledger;
use foretrain_fleet::audit::audit;
use foretrain_fleet::jobs::{Table, TableOptions};
use foretrain_fleet::pai::characterise::{Characteriser, Method};
use foretrain_fleet::pai::synthetic::Population;

const ROWS: u64 = 1_000_000;

fn open(text: &str) -> Table {
    Table::from_bytes("table.csv", text.as_bytes().to_vec(), &TableOptions::default())
        .expect("a table")
}

/// A log of a scheduler: dates, GPUs, users, ends.
fn log() -> String {
    let mut text = String::from(
        "job_id,user,vc,gpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n",
    );
    for job in 0..ROWS {
        let (second, minute) = (job % 60, job / 60 % 60);
        let (hour, day) = (job / 3600 % 24, 1 + job / 86_400 % 28);
        text.push_str(&format!(
            "{job},u{},vc{},{},1,COMPLETED,2020-04-{day:02} {hour:02}:{minute:02}:{second:02},\
             2020-04-{day:02} {hour:02}:{minute:02}:{second:02},\
             2020-05-{day:02} {hour:02}:{minute:02}:{second:02},2592000,0\n",
            job % 300,
            job % 7,
            1 << (job % 4),
        ));
    }
    text
}

/// What no reader of tables can do without: the text cut into cells. Other figures are to be read as
/// multiples of it.
fn cells_alone(text: &str) -> usize {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
    let (mut row, mut bytes) = (csv::ByteRecord::new(), 0);
    while reader.read_byte_record(&mut row).is_ok_and(|more| more) {
        bytes += row.as_slice().len();
    }
    bytes
}

fn tables(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("million rows");
    group.sample_size(10);
    let log = log();
    let features = Population { jobs: ROWS, seed: 1 }.csv();
    group.bench_function("characterise", |bencher| {
        bencher.iter(|| {
            let mut all = Characteriser::new(Method::PAI_2019);
            open(&features).for_each(|job| all.add(job));
            black_box(all.finish(&mut Ledger::new()))
        });
    });
    for (name, text) in [("cells of features alone", &features), ("cells of a log alone", &log)] {
        group.bench_function(name, |bencher| bencher.iter(|| black_box(cells_alone(text))));
    }
    group.bench_function("read a log", |bencher| {
        bencher.iter(|| {
            let mut gpus = 0.0;
            open(&log).for_each(|job| gpus += job.gpus.unwrap_or(0.0));
            black_box(gpus)
        });
    });
    group.bench_function("audit a log", |bencher| {
        bencher.iter(|| black_box(audit(vec![open(&log)])));
    });
    group.finish();
}

criterion_group!(benches, tables);
criterion_main!(benches);
