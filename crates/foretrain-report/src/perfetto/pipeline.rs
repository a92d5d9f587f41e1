//! Simulated pipelines for Perfetto: one process per schedule, one thread per stage.

use std::io::{self, Write};

use foretrain_plan::varuna::compare::Compared;
use serde_json::json;

use super::{Events, micros};

/// Writes the tasks of each schedule that were kept.
///
/// # Errors
/// If the writer fails.
pub fn write_pipelines(out: &mut dyn Write, all: &[Compared]) -> io::Result<()> {
    write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")?;
    let mut events = Events { out, first: true };
    for (index, one) in all.iter().enumerate() {
        let pid = index + 1;
        let title = format!("{}, micro-batches: {}", one.step.schedule(), one.step.micro_batches());
        events.metadata("process_name", pid, 0, &title)?;
        for stage in 0..one.step.pipeline().stages().len() {
            events.metadata("thread_name", pid, stage, &format!("stage {stage}"))?;
        }
        for slice in &one.run.slices {
            let work = slice.task.work.as_str();
            events.event(&json!({
                "ph": "X",
                "name": format!("{work} {}", slice.task.micro_batch),
                "cat": work,
                "pid": pid,
                "tid": slice.stage,
                "ts": micros(slice.start),
                "dur": micros(slice.end - slice.start),
            }))?;
        }
    }
    let Events { out, .. } = events;
    write!(out, "\n]}}\n")
}

#[cfg(test)]
mod tests {
    use foretrain_core::Nanos;
    use foretrain_plan::varuna::compare::{CompareOptions, Detail, compare};
    use foretrain_plan::varuna::schedule::Schedule;
    use foretrain_plan::varuna::simulate::{Pipeline, StageTime};
    use serde_json::Value;

    #[test]
    fn every_task_is_a_slice_of_its_stage() {
        let ms = Nanos::from_millis;
        let stages = vec![StageTime { forward: ms(1), backward: ms(2) }; 2];
        let pipeline = Pipeline::new(stages, vec![ms(1)]).unwrap();
        let options = CompareOptions {
            schedules: vec![Schedule::OneFOneB, Schedule::GPipe],
            micro_batches: 2,
            after: Nanos::ZERO,
            jitter: None,
            detail: Detail::Slices,
        };
        let mut out = Vec::new();
        super::write_pipelines(&mut out, &compare(&pipeline, &options).unwrap()).unwrap();
        let document: Value = serde_json::from_slice(&out).unwrap();
        let events = document["traceEvents"].as_array().unwrap();
        let slices = |pid: u64| events.iter().filter(|e| e["ph"] == "X" && e["pid"] == pid).count();
        assert_eq!((slices(1), slices(2)), (8, 12));
        let first = events.iter().find(|e| e["name"] == "forward 1" && e["tid"] == 0).unwrap();
        assert_eq!((first["ts"].as_f64(), first["dur"].as_f64()), (Some(1000.0), Some(1000.0)));
    }
}
