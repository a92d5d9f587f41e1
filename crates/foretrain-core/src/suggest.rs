//! "Did you mean": the nearest valid spelling.

/// The candidate nearest to `wrong`, if it is near enough to be meant. Case is ignored.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wrong = wrong.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&wrong, &candidate.to_lowercase()), candidate))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let names = ["dgx-a100", "dgx-h100", "aws-p4d"];
        assert_eq!(nearest("dgx_a100", names), Some("dgx-a100"));
        assert_eq!(nearest("P4D", ["p4d", "p5"]), Some("p4d"));
        assert_eq!(nearest("zzz", names), None);
    }
}
