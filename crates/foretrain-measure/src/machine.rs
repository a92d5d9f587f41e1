//! What machine this is.

use std::env::consts::{ARCH, OS};
use std::thread::available_parallelism;

/// The processor and how many of it this process may use, for the source of figures.
pub fn describe_machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|info| model(&info));
    let processor = processor.unwrap_or_else(|| format!("a processor of type {ARCH}"));
    let count = available_parallelism().map_or(1, usize::from);
    let threads = if count == 1 { "thread" } else { "threads" };
    format!("{processor}, {count} {threads}, {OS}")
}

/// The model of Linux's list of processors.
fn model(info: &str) -> Option<String> {
    let mut fields = info.lines().filter_map(|line| line.split_once(':'));
    let (_, name) = fields.find(|(key, _)| key.trim() == "model name")?;
    let name: Vec<&str> = name.split_whitespace().collect();
    (!name.is_empty()).then(|| name.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found() {
        let info = "processor\t: 0\nmodel name\t: AMD EPYC 7763  64-Core\nmodel name\t: other\n";
        assert_eq!(model(info).as_deref(), Some("AMD EPYC 7763 64-Core"));
        assert_eq!(model("model name :  \n"), None);
        assert_eq!(model("Hardware: x"), None);
        assert!(describe_machine().contains("thread"));
    }
}
