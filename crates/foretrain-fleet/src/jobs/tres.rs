//! GPUs in the words of Slurm: `gres/gpu:a100=4,cpu=32`, `gpu:a100:2(S:0-1)`, `gpu:8`.

use super::value;

/// GPUs that such a text asks for or names.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tres<'a> {
    /// How many.
    pub(super) gpus: f64,
    /// Their kind, if it names one and only one.
    pub(super) kind: Option<&'a [u8]>,
}

/// Reads a list of trackable resources; none if the text is no such list. A list without GPUs has 0.
/// Where a list has both a total and counts by kind, they are the same GPUs.
pub(super) fn read(cell: &[u8]) -> Option<Tres<'_>> {
    let (mut total, mut typed) = (None, None);
    let mut kind: Option<&[u8]> = None;
    let mut kinds = 0;
    for item in items(cell) {
        let item = item.trim_ascii();
        let item = item.split(|&byte| byte == b'(').next().unwrap_or(item);
        if item.is_empty() {
            continue;
        }
        let (name, amount) = match item.iter().position(|&byte| byte == b'=') {
            Some(at) => (&item[..at], Some(value::number(&item[at + 1..]))),
            None => (item, None),
        };
        let bare = ["gres/", "gres:"].iter().find_map(|before| {
            let (head, rest) = name.split_at_checked(before.len())?;
            head.eq_ignore_ascii_case(before.as_bytes()).then_some(rest)
        });
        let mut parts = bare.unwrap_or(name).split(|&byte| byte == b':');
        let first = parts.next().unwrap_or_default();
        if !first.eq_ignore_ascii_case(b"gpu") {
            // Another resource. A name that counts nothing is no list of resources.
            let counts = amount.is_some() || bare.is_some() || parts.next().is_some();
            if !counts || !first.first().is_some_and(u8::is_ascii_alphabetic) {
                return None;
            }
            continue;
        }
        let (mut of, mut count) = (None, amount);
        for part in parts {
            match value::number(part) {
                Some(number) if amount.is_none() => count = Some(Some(number)),
                _ if !part.is_empty() => of = Some(part),
                _ => {}
            }
        }
        // `gpu:a100` is one.
        let count = count.unwrap_or(Some(1.0)).filter(|count| *count >= 0.0)?;
        *(if of.is_some() { &mut typed } else { &mut total }).get_or_insert(0.0) += count;
        if let Some(of) = of
            && kind != Some(of)
        {
            kind = Some(of);
            kinds += 1;
        }
    }
    let found = !cell.trim_ascii().is_empty();
    let kind = kind.filter(|_| kinds == 1);
    found.then(|| Tres { gpus: total.or(typed).unwrap_or(0.0), kind })
}

/// What stands between commas outside of brackets.
fn items(cell: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut depth = 0_u32;
    cell.split(move |&byte| {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        byte == b',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_once() {
        for (text, gpus, kind) in [
            ("gres/gpu:8", 8.0, None),
            ("gres/gpu=8", 8.0, None),
            ("gres/gpu:a100=4,cpu=32", 4.0, Some("a100")),
            ("gpu:a100:2", 2.0, Some("a100")),
            ("gpu:2(S:0-1)", 2.0, None),
            ("gpu:h100:4(S:0,2),shard:16", 4.0, Some("h100")),
            ("gres:gpu:4", 4.0, None),
            ("gpu:a100", 1.0, Some("a100")),
            ("billing=32,cpu=32,gres/gpu=4,gres/gpu:a100=4,mem=100G,node=2", 4.0, Some("a100")),
            ("gres/gpu:a100=2,gres/gpu:v100=1", 3.0, None),
            ("gres/gpu:1g.5gb=2", 2.0, Some("1g.5gb")),
            ("billing=1,cpu=64,mem=8G,node=1", 0.0, None),
        ] {
            let kind = kind.map(str::as_bytes);
            assert_eq!(read(text.as_bytes()), Some(Tres { gpus, kind }), "{text}");
        }
        for text in ["", "8", "0,1,2", "V100", "n1,n2", "gpu=", "gpu=x", "gpu=-1", "12:00:00"] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_too_much(text in ".{0,60}", list in "(gres/)?gpu[:=a0-9,()]{0,20}") {
            for text in [text, list] {
                proptest::prop_assert!(read(text.as_bytes()).is_none_or(|tres| tres.gpus >= 0.0));
            }
        }
    }
}
