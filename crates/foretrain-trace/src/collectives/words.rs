//! Splitting the names of kernels into words, so that `SmallReduce` is never read as `AllReduce`.

use smallvec::SmallVec;

/// The part of a kernel's name that a person chose: the path without return type, template
/// arguments and parameters.
pub(crate) fn stem(name: &str) -> String {
    let name = name.replace("(anonymous namespace)::", "");
    let mut stem = String::new();
    let mut depth = 0_u32;
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            _ if depth == 0 => stem.push(c),
            _ => {}
        }
    }
    let stem = stem.trim_end();
    stem.rsplit(' ').next().unwrap_or_default().to_owned()
}

/// The lowercase words of an identifier. Words end at any non-alphanumeric character, where the
/// case rises, and between letters and digits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(SmallVec<[String; 12]>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Upper,
    Lower,
    Digit,
    Break,
}

fn class(c: char) -> Class {
    if c.is_ascii_uppercase() {
        Class::Upper
    } else if c.is_ascii_digit() {
        Class::Digit
    } else if c.is_alphanumeric() {
        Class::Lower
    } else {
        Class::Break
    }
}

impl Words {
    pub(crate) fn split(text: &str) -> Self {
        let mut words = SmallVec::new();
        let mut word = String::new();
        let mut before = Class::Break;
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            let now = class(c);
            let next_is_lower = rest.peek().is_some_and(|&c| class(c) == Class::Lower);
            let boundary = match (before, now) {
                (_, Class::Break) | (Class::Lower, Class::Upper) => true,
                (Class::Upper, Class::Upper) => next_is_lower,
                (a, b) => (a == Class::Digit) != (b == Class::Digit),
            };
            if boundary && !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if now != Class::Break {
                word.push(c.to_ascii_lowercase());
            }
            before = now;
        }
        if !word.is_empty() {
            words.push(word);
        }
        Self(words)
    }

    /// Where `phrase` (lowercase, without separators) stands as whole words.
    pub(crate) fn find(&self, phrase: &str) -> Option<usize> {
        (0..self.0.len()).find(|&from| {
            let mut rest = phrase;
            for word in &self.0[from..] {
                match rest.strip_prefix(word.as_str()) {
                    Some("") => return true,
                    Some(left) => rest = left,
                    None => return false,
                }
            }
            false
        })
    }

    pub(crate) fn has(&self, phrase: &str) -> bool {
        self.find(phrase).is_some()
    }

    pub(crate) fn get(&self, index: usize) -> Option<&str> {
        self.0.get(index).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stems_lose_types_templates_and_parameters() {
        for (name, want) in [
            (
                "void vllm::cross_device_reduce_1stage<float, 8>(int*)",
                "vllm::cross_device_reduce_1stage",
            ),
            ("void at::native::(anonymous namespace)::k<A<B>>(C)", "at::native::k"),
            ("ns::Holder<int>::run(int)", "ns::Holder::run"),
            ("ncclKernel_AllReduce", "ncclKernel_AllReduce"),
            ("void broken<int, (", "broken"),
            ("", ""),
        ] {
            assert_eq!(stem(name), want);
        }
    }

    #[test]
    fn phrases_match_whole_words_only() {
        assert!(Words::split("fooComm_AllReduce").has("allreduce"));
        assert!(Words::split("ncclAllReduceRingLLKernel_sum_f32").has("ll"));
        assert!(Words::split("hcom_allReduce__7").has("allreduce"));
        assert!(Words::split("AlltoAll").has("alltoall"));
        assert!(!Words::split("SmallReduce").has("allreduce"));
        assert!(!Words::split("ballReduce").has("allreduce"));
        assert!(Words::split("RING_LL128").has("ll128"));
    }
}
