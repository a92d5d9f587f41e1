//! One sweep in all the forms that tools print it in.

use std::fmt::Write;

/// 1 KiB to 1 GiB in powers of two.
pub(crate) fn sizes() -> impl Iterator<Item = u64> {
    (10..=30).map(|power| 1 << power)
}

/// Time in microseconds and both bandwidths in GB/s, out of place and in place, with the digits
/// that a log prints. An all-reduce of 8 ranks that takes 20 us and 1 us per 230.4 kB.
pub(crate) fn figures(size: u64) -> [[f64; 3]; 2] {
    [20.0, 21.5].map(|latency| {
        let time: f64 = printed_time(latency + size as f64 / 230_400.0).parse().expect("a number");
        let rate = size as f64 / time / 1e3;
        [time, two_digits(rate), two_digits(rate * 1.75)]
    })
}

fn two_digits(value: f64) -> f64 {
    format!("{value:.2}").parse().expect("a number")
}

/// As nccl-tests prints times.
fn printed_time(micros: f64) -> String {
    let decimals = if micros >= 1e4 {
        0
    } else if micros >= 1e2 {
        1
    } else {
        2
    };
    format!("{micros:.decimals$}")
}

/// Which parts a text log has.
pub(crate) struct Sweep {
    /// As tools printed before 2022: an error instead of a count, no root.
    pub(crate) old: bool,
    /// Names the program.
    pub(crate) banner: bool,
    /// Lists the ranks.
    pub(crate) ranks: bool,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { old: false, banner: true, ranks: true }
    }
}

impl Sweep {
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.banner && !self.old {
            text.push_str("# Collective test starting: all_reduce_perf\n");
        }
        text.push_str("# nThread 1 nGpus 1 minBytes 1024 maxBytes 1073741824 step: 2(factor) warmup iters: 5 iters: 20\n#\n");
        text.push_str("# Using devices\n");
        for rank in 0..if self.ranks { 8 } else { 0 } {
            let (host, device) = (rank / 4, rank % 4);
            let group = if self.old { "" } else { "Group  0 " };
            let _ = writeln!(
                text,
                "#  Rank {rank:2} {group}Pid   3{rank} on     gpu-{host} device {device:2} [0x0{device}] NVIDIA A100-SXM4-40GB"
            );
        }
        self.header(&mut text);
        for size in sizes() {
            self.row(size, &mut text);
        }
        text.push_str("# Out of bounds values : 0 OK\n");
        let rates: Vec<f64> = sizes().flat_map(|s| figures(s).map(|f| f[2])).collect();
        let _ = writeln!(
            text,
            "# Avg bus bandwidth    : {:.4} ",
            rates.iter().sum::<f64>() / rates.len() as f64
        );
        text.push_str("#\n");
        text
    }

    fn header(&self, text: &mut String) {
        let (root, wrong) = if self.old { ("", " error") } else { ("    root", "#wrong") };
        let _ =
            writeln!(text, "#\n#{:60}out-of-place                       in-place          ", "");
        let _ = write!(text, "#       size         count      type   redop{root}");
        for _ in 0..2 {
            let _ = write!(text, "     time   algbw   busbw {wrong}");
        }
        let _ = writeln!(
            text,
            "\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "
        );
    }

    fn row(&self, size: u64, text: &mut String) {
        let root = if self.old { "" } else { "      -1" };
        let _ = write!(text, "{size:12}  {:12}  {:>8}  {:>6}{root}", size / 4, "float", "sum");
        for (placement, [time, algbw, busbw]) in figures(size).into_iter().enumerate() {
            let check = match (self.old, placement) {
                (true, 0) => "2e-07",
                (true, _) => "1e-07",
                (false, _) => "    0",
            };
            let _ = write!(text, "  {:>7}  {algbw:6.2}  {busbw:6.2}  {check}", printed_time(time));
        }
        text.push('\n');
    }
}

/// What the library prints while the benchmark does.
pub(crate) fn info_line() -> &'static str {
    "gpu-1:3810:3864 [6] NCCL INFO Channel 03/0 : 15[7] -> 14[6] via P2P/IPC/read"
}

/// A launcher's label before every line, two lines of debug output between rows and one within:
/// the size of the torn row, and the text.
pub(crate) fn with_launcher_and_debug_output(text: &str) -> (u64, String) {
    let torn = 1 << 20;
    let mut labelled = String::new();
    for line in text.lines() {
        let begins = |size: u64| line.starts_with(&format!("{size:12} "));
        if begins(4096) || begins(8_388_608) {
            let _ = writeln!(labelled, "[3] {}", info_line());
        }
        if begins(torn) {
            let (begin, end) = line.split_at(66);
            let _ = writeln!(labelled, "[0] {begin}{}\n[0] {end}", info_line());
        } else {
            let _ = writeln!(labelled, "[0] {line}");
        }
    }
    (torn, labelled)
}

/// As rccl-tests write with `--output_format json`.
pub(crate) fn json_lines() -> String {
    let mut text = String::new();
    for size in sizes() {
        for (in_place, [time, algbw, busbw]) in figures(size).into_iter().enumerate() {
            let _ = writeln!(
                text,
                r##"{{"#wrong":"0","algBw":{algbw},"busBw":{busbw},"gpus":8,"inPlace":{in_place},"name":"AllReduce","redop":"sum","size":{size},"time":{time},"type":"float"}}"##
            );
        }
    }
    text
}

/// As rccl-tests with MPI write with `--output_format csv`.
pub(crate) fn csv() -> String {
    let mut text = "numCycle,name,nodes,ranks,ranksPerNode,gpusPerRank,size,type,redop,inPlace,time,algBw,busBw,#wrong\n".to_owned();
    for size in sizes() {
        for (in_place, [time, algbw, busbw]) in figures(size).into_iter().enumerate() {
            let _ = writeln!(
                text,
                r#"0,"AllReduce",2,8,4,1,{size},"float","sum",{in_place},{time},{algbw:.2},{busbw:.2},"0""#
            );
        }
    }
    text
}

/// As nccl-tests since 2.17 writes with `-J`.
pub(crate) fn document() -> String {
    let devices: Vec<String> = (0..8)
        .map(|rank| {
            format!(r#"{{"rank":{rank},"group":0,"pid":1,"hostname":"gpu-{}","device":0,"device_hex":"0","device_info":"NVIDIA A100"}}"#, rank / 4)
        })
        .collect();
    let rows: Vec<String> = sizes()
        .map(|size| {
            let [out, inside] = figures(size).map(|[time, ..]| {
                let (algbw, busbw) = (size as f64 / time / 1e3, 1.75 * size as f64 / time / 1e3);
                format!(r#"{{"time":{time:.6},"alg_bw":{algbw:.6},"bus_bw":{busbw:.6},"nwrong":null}}"#)
            });
            format!(r#"{{"size":{size},"count":{},"type":"float","redop":"sum","root":"    -1","out_of_place":{out},"in_place":{inside},"actual_iterations":20}}"#, size / 4)
        })
        .collect();
    format!(
        r#"{{"version":2,"start_time":"2026-01-01 00:00:00","args":["./all_reduce_perf","-J","x"],"env":[],"nccl_version":22900,"config":{{"nthreads":1,"ngpus":1,"devices":[{}]}},"results":[{}],"errors":[]}}"#,
        devices.join(","),
        rows.join(",")
    )
}

/// As an early `nccom-test` prints: one placement, binary gigabytes per second.
pub(crate) fn nccom() -> String {
    let mut text =
        "nccom-test -r 2 allr\n  size(B)  count(elems)  type  time(us)  algbw(GB/s)  busbw(GB/s)\n"
            .to_owned();
    for (size, time) in [(65_536_u64, 58.0), (1 << 20, 75.0), (1 << 25, 768.0)] {
        let rate = size as f64 / time / 1e3 * 1e9 / (1_u64 << 30) as f64;
        let _ = writeln!(text, "{size:12} {:12} fp32 {time} {rate:.2} {rate:.2}", size / 4);
    }
    text
}
