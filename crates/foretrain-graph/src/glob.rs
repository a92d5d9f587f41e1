//! Glob patterns over names, matched in linear time.

/// A compiled pattern: `*` stands for any text, `?` for one character, `\` takes the next
/// character literally. The pattern must cover the whole text and case matters.
///
/// Matching simulates the pattern's automaton with one bit per position (the Shift-And method of
/// Baeza-Yates and Gonnet, 1992), so a text of n characters against m positions costs
/// n * ceil((m + 1) / 64) word steps for every input; there is no backtracking.
///
/// ```
/// use foretrain_graph::Glob;
/// let gemm = Glob::new("*gemm_?16*");
/// assert!(gemm.matches("ampere_gemm_f16_128x64"));
/// assert!(!gemm.matches("gemm_f32"));
/// ```
#[derive(Clone, Debug)]
pub struct Glob {
    pattern: String,
    matcher: Matcher,
}

#[derive(Clone, Debug)]
enum Matcher {
    Literal(String),
    Automaton { elements: Vec<Element>, ascii: Vec<u64>, stay: Vec<u64> },
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Element {
    AnyChar,
    Char(char),
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}
impl Eq for Glob {}

impl Glob {
    /// Compiles a pattern. Every text is a valid pattern.
    pub fn new(pattern: &str) -> Self {
        let (elements, stars) = elements_of(pattern);
        let matcher = if stars.is_empty() && !elements.contains(&Element::AnyChar) {
            Matcher::Literal(
                elements
                    .iter()
                    .filter_map(|e| if let Element::Char(c) = e { Some(*c) } else { None })
                    .collect(),
            )
        } else {
            automaton(elements, &stars)
        };
        Self { pattern: pattern.to_owned(), matcher }
    }

    /// The pattern that matches exactly `text`.
    pub fn literal(text: &str) -> Self {
        let mut pattern = String::with_capacity(text.len());
        for c in text.chars() {
            if matches!(c, '*' | '?' | '\\') {
                pattern.push('\\');
            }
            pattern.push(c);
        }
        Self::new(&pattern)
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.pattern
    }

    /// Whether the pattern covers the whole of `text`.
    pub fn matches(&self, text: &str) -> bool {
        match &self.matcher {
            Matcher::Literal(literal) => literal == text,
            Matcher::Automaton { elements, ascii, stay } => {
                let words = stay.len();
                let mut state = vec![0u64; words];
                state[0] = 1;
                let mut rare = vec![0u64; words];
                for c in text.chars() {
                    let accepts = if c.is_ascii() {
                        let row = c as usize * words;
                        &ascii[row..row + words]
                    } else {
                        rare.fill(0);
                        set_accepting(elements, c, &mut rare);
                        &rare
                    };
                    if !step(&mut state, accepts, stay) {
                        return false;
                    }
                }
                bit(&state, elements.len())
            }
        }
    }
}

/// The positions of a pattern, and after how many positions a star stands (ascending).
fn elements_of(pattern: &str) -> (Vec<Element>, Vec<usize>) {
    let (mut elements, mut stars) = (Vec::new(), Vec::new());
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '*' if stars.last() != Some(&elements.len()) => stars.push(elements.len()),
            '*' => {}
            '?' => elements.push(Element::AnyChar),
            '\\' => elements.push(Element::Char(chars.next().unwrap_or('\\'))),
            c => elements.push(Element::Char(c)),
        }
    }
    (elements, stars)
}

fn automaton(elements: Vec<Element>, stars: &[usize]) -> Matcher {
    let words = elements.len() / 64 + 1;
    let mut stay = vec![0u64; words];
    for &star in stars {
        stay[star / 64] |= 1 << (star % 64);
    }
    let mut ascii = vec![0u64; 128 * words];
    for (code, row) in ascii.chunks_exact_mut(words).enumerate() {
        set_accepting(&elements, char::from(code as u8), row);
    }
    Matcher::Automaton { elements, ascii, stay }
}

/// Sets bit i + 1 for every position i that accepts `c`.
fn set_accepting(elements: &[Element], c: char, row: &mut [u64]) {
    for (i, element) in elements.iter().enumerate() {
        if matches!(element, Element::AnyChar) || *element == Element::Char(c) {
            row[(i + 1) / 64] |= 1 << ((i + 1) % 64);
        }
    }
}

/// Advances all states by one character; false once none is left.
fn step(state: &mut [u64], accepts: &[u64], stay: &[u64]) -> bool {
    let (mut carry, mut alive) = (0, 0);
    for ((word, accepts), stay) in state.iter_mut().zip(accepts).zip(stay) {
        let shifted = (*word << 1) | carry;
        carry = *word >> 63;
        *word = (shifted & accepts) | (*word & stay);
        alive |= *word;
    }
    alive != 0
}

fn bit(state: &[u64], index: usize) -> bool {
    state[index / 64] >> (index % 64) & 1 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The textbook definition, exponential but plainly right.
    fn by_definition(pattern: &[char], text: &[char]) -> bool {
        match (pattern.first(), text.first()) {
            (None, None) => true,
            (Some('*'), _) => {
                by_definition(&pattern[1..], text)
                    || (!text.is_empty() && by_definition(pattern, &text[1..]))
            }
            (Some('?'), Some(_)) => by_definition(&pattern[1..], &text[1..]),
            (Some(p), Some(t)) => p == t && by_definition(&pattern[1..], &text[1..]),
            _ => false,
        }
    }

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, want) in [
            ("*gemm*", "ampere_bf16_gemm_128", true),
            ("gemm", "gemm_x", false),
            ("a?c", "a\u{e9}c", true),
            ("a?c", "ac", false),
            ("", "", true),
            ("*", "", true),
            (r"a\*b", "a*b", true),
            (r"a\*b", "axb", false),
            (r"end\", r"end\", true),
            ("caf\u{e9}*", "caf\u{e9}s", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(text), want, "{pattern} on {text}");
        }
    }

    #[test]
    fn a_pattern_longer_than_a_word_matches() {
        let long = "x".repeat(200);
        assert!(Glob::new(&format!("{long}*y")).matches(&format!("{long}zzy")));
        assert!(!Glob::new(&format!("{long}?y")).matches(&format!("{long}zzy")));
    }

    #[test]
    fn many_stars_on_a_long_text_end_soon() {
        let pattern = "*a".repeat(200) + "b";
        assert!(!Glob::new(&pattern).matches(&"a".repeat(20_000)));
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            let (p, t): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
            prop_assert_eq!(Glob::new(&pattern).matches(&text), by_definition(&p, &t));
        }

        #[test]
        fn a_literal_matches_itself_only(text in r"[a*?\\]{0,6}", other in r"[a*?\\]{0,6}") {
            prop_assert!(Glob::literal(&text).matches(&text));
            prop_assert_eq!(Glob::literal(&text).matches(&other), text == other);
        }
    }
}
