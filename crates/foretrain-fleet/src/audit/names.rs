//! Names of machines that may be of one machine.

use rustc_hash::FxHashMap;

/// Names that differ from another only in case or domain.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Alike {
    pub(super) count: u64,
    /// The first, and what it is like.
    pub(super) first: Option<String>,
}

/// How many of the suspects (sorted) may be one of the known, or of the suspects before them.
pub(super) fn alike(known: &[&str], suspects: &[&str]) -> Alike {
    let mut found = Alike::default();
    // By full names in small letters, and by hosts of names with a domain.
    let mut full: FxHashMap<String, &str> = FxHashMap::default();
    let mut hosts: FxHashMap<String, &str> = FxHashMap::default();
    let names = known.iter().map(|name| (*name, false));
    for (name, suspect) in names.chain(suspects.iter().map(|name| (*name, true))) {
        let small = name.to_lowercase();
        let host = host(&small).map(str::to_owned);
        // Two hosts of a name in two domains are two machines.
        let like = full
            .get(&small)
            .or_else(|| host.as_ref().and_then(|host| full.get(host)))
            .or_else(|| if host.is_none() { hosts.get(&small) } else { None });
        if let Some(like) = like.filter(|_| suspect) {
            found.count += 1;
            found.first.get_or_insert_with(|| format!("{name:?} and {like:?}"));
        }
        full.entry(small).or_insert(name);
        if let Some(host) = host {
            hosts.entry(host).or_insert(name);
        }
    }
    found
}

/// What comes before a domain; numbers with points are addresses.
fn host(name: &str) -> Option<&str> {
    let (host, _) = name.split_once('.')?;
    host.chars().any(char::is_alphabetic).then_some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_domain_make_no_other_machine() {
        let count = |known: &[&str], suspects: &[&str]| alike(known, suspects).count;
        assert_eq!(count(&["n1", "n2"], &["N2", "n1.cluster.local", "n3"]), 2);
        assert_eq!(count(&["n1.cluster.local"], &["N1"]), 1);
        assert_eq!(count(&["n1.cluster.local"], &["n1.other.local"]), 0);
        assert_eq!(count(&[], &["a.one", "a.two"]), 0);
        assert_eq!(count(&[], &["a", "A.one"]), 1);
        assert_eq!(count(&["10"], &["10.0.0.1", "10.0.0.2"]), 0);
        let found = alike(&["n2"], &["N2"]);
        assert_eq!(found.first.as_deref(), Some("\"N2\" and \"n2\""));
    }
}
