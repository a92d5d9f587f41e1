//! The titles of tables that scripts print.

use super::cells::Gap;
use super::unit::Unit;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Size,
    Time,
    AlgBw,
    BusBw,
    Kind,
    Ranks,
    Nodes,
    /// Processor time of a call.
    Processor,
    Type,
    Count,
    /// `1048576x4`: elements times bytes of each.
    Product,
    Other,
}

/// One column: what it holds, and in which unit if the title says.
pub(super) type Column = (Role, Option<Unit>);

/// Titles that make a table of a collective benchmark.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Header {
    pub(super) gap: Gap,
    pub(super) columns: Vec<Column>,
}

/// Longer lines are no titles.
const LONGEST: usize = 512;

impl Header {
    /// The titles on a line: a size, and a bandwidth or a time. A time alone is a table of
    /// anything, unless a column names the operation.
    pub(super) fn of(line: &str) -> Option<Self> {
        if line.len() > LONGEST || line.starts_with('#') || line.contains('{') {
            return None;
        }
        let gap = Gap::of_titles(line);
        let titles = gap.titles(line);
        // A piece of the titles of nccl-tests: their rows are another reader's.
        if titles.iter().any(|title| matches!(title.as_str(), "redop" | "root")) {
            return None;
        }
        let mut columns = Vec::with_capacity(titles.len());
        for title in &titles {
            let (role, unit) = column(title)?;
            // The first of several times or bandwidths is the one of interest.
            let again = role != Role::Other && columns.iter().any(|(known, _)| *known == role);
            columns.push((if again { Role::Other } else { role }, unit));
        }
        let has = |role: Role| columns.iter().any(|(known, _)| *known == role);
        let has_rate = has(Role::AlgBw) || has(Role::BusBw);
        let tells = has_rate || (has(Role::Time) && has(Role::Kind));
        (has(Role::Size) && tells).then_some(Self { gap, columns })
    }
}

/// The column of a title; `None` if the text is no title.
fn column(title: &str) -> Option<Column> {
    let (name, detail) = match title.split_once(['(', '[']) {
        Some((name, detail)) => (name, detail.split([')', ']']).next()),
        None => (title, None),
    };
    let mut words: Vec<&str> = name
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '/')
        .filter(|w| !w.is_empty())
        .collect();
    if words.is_empty() || words.len() > 4 || !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let mut unit = detail.and_then(|detail| Unit::parse(detail.trim()));
    if unit.is_none() && words.len() > 1 {
        unit = words.last().and_then(|word| Unit::parse(word));
        if unit.is_some() {
            words.pop();
        }
    }
    let role = role(&words.join(" ").to_ascii_lowercase());
    if role == Role::Size && words == ["bytes"] {
        unit = Unit::parse("B");
    }
    // A unit of another kind shows that the title means something else.
    let fits = match (role, unit) {
        (Role::Processor, None) => false,
        (_, None) => true,
        (Role::Size, Some(unit)) => matches!(unit, Unit::Size { .. }),
        (Role::Time | Role::Processor, Some(unit)) => matches!(unit, Unit::Time(_)),
        (Role::AlgBw | Role::BusBw, Some(unit)) => matches!(unit, Unit::Rate { .. }),
        _ => true,
    };
    Some((if fits { role } else { Role::Other }, unit))
}

fn role(name: &str) -> Role {
    let squeezed = name.replace(' ', "");
    let word = |wanted: &[&str]| name.split(' ').any(|word| wanted.contains(&word));
    let rate = squeezed.contains("bw") || squeezed.contains("bandwidth");
    // "Throughput" and "bandwidth" alone have no fixed meaning: some tools count a reduction twice.
    match squeezed.as_str() {
        _ if rate && squeezed.contains("bus") => Role::BusBw,
        _ if rate && squeezed.contains("alg") => Role::AlgBw,
        _ if word(&["min", "max", "std", "stdev", "p5", "p90", "p95", "p99"]) => Role::Other,
        _ if word(&["time", "latency", "duration", "elapsed"]) => Role::Time,
        "worldsize" | "ranks" | "nranks" | "numranks" | "gpus" | "ngpus" | "numgpus"
        | "devices" | "world" => Role::Ranks,
        "nodes" | "nnodes" | "numnodes" => Role::Nodes,
        "collective" | "op" | "operation" | "primitive" | "collop" => Role::Kind,
        "cpu" => Role::Processor,
        "dtype" | "type" => Role::Type,
        "count" | "numel" | "elements" => Role::Count,
        "description" => Role::Product,
        "size" | "payload" | "bytes" | "nbytes" | "msgsize" | "messagesize" | "datasize"
        | "tensorsize" | "buffersize" | "payloadsize" | "message" => Role::Size,
        _ => Role::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(line: &str) -> Option<Vec<Role>> {
        Header::of(line).map(|header| header.columns.iter().map(|(role, _)| *role).collect())
    }

    #[test]
    fn titles_in_use_are_understood() {
        use Role as R;
        for (line, want) in [
            ("| payload |   busbw  |   algbw  |", vec![R::Size, R::BusBw, R::AlgBw]),
            ("payload | busbw | algbw", vec![R::Size, R::BusBw, R::AlgBw]),
            (
                "Size (Bytes)         Description               Duration             Throughput (Gbps)    BusBW (Gbps)",
                vec![R::Size, R::Product, R::Time, R::Other, R::BusBw],
            ),
            (
                "size (MB)   latency (ms)   Algorithm Bandwidth (GB/s)   Bus Bandwidth (GB/s)",
                vec![R::Size, R::Time, R::AlgBw, R::BusBw],
            ),
            ("collective,world_size,bytes,time_us", vec![R::Kind, R::Ranks, R::Size, R::Time]),
            (
                "world,bytes,time_us,op,p10_us,barriered_us,n,nodes,cpu_us",
                vec![
                    R::Ranks,
                    R::Size,
                    R::Time,
                    R::Kind,
                    R::Other,
                    R::Other,
                    R::Other,
                    R::Nodes,
                    R::Processor,
                ],
            ),
            (
                "size_bytes,p99_us,avg_time_us,busbw_GBps",
                vec![R::Size, R::Other, R::Time, R::BusBw],
            ),
        ] {
            assert_eq!(roles(line), Some(want), "{line}");
        }
    }

    #[test]
    fn other_lines_are_no_titles() {
        for line in [
            "size,name,what",
            "bytes,time_us",
            "# size count type time algbw busbw",
            "the size of the whole message in flight, busbw, and then more",
            "32KB | 0.92GBps | 0.53GBps",
            "size         count      type   redop    root     time   algbw   busbw",
            "",
            "|||",
        ] {
            assert_eq!(roles(line), None, "{line}");
        }
    }
}
