//! Clusters by name or by the file that defines them.

use std::path::Path;

use foretrain_core::{InputError, Result};

use crate::book::fold;
use crate::catalogue::{Catalogue, read_text};
use crate::cluster::Cluster;
use crate::quantity::shown;
use crate::read::parse;

impl Catalogue {
    /// The cluster of this name, or that of a catalogue file, whose entries are added.
    ///
    /// A file stands for the one cluster that it defines, or for its one node type if it defines no
    /// cluster; `FILE#NAME` is one of several.
    ///
    /// # Errors
    /// As [`cluster`](Self::cluster) and [`load_user_file`](Self::load_user_file), and if the file
    /// does not define the cluster, or several and none is named.
    pub fn cluster_or_file(&mut self, wanted: &str) -> Result<Cluster> {
        let (file, name) = match wanted.rsplit_once('#') {
            Some((file, name)) => (Path::new(file), Some(name)),
            None => (Path::new(wanted), None),
        };
        let is_toml = file.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
        // A file must not take the place of a cluster that happens to have its name.
        let known = self.cluster(wanted);
        if !is_toml && (known.is_ok() || !file.is_file()) {
            return known;
        }
        let text = read_text(file)?;
        self.load_str(&text, file)?;
        let name = chosen(&text, file, name)?;
        self.cluster(&name)
    }
}

/// The name of the cluster that is meant among those that a file defines.
fn chosen(text: &str, file: &Path, name: Option<&str>) -> Result<String> {
    let spec = parse(text).map_err(|error| error.in_file(file))?;
    let clusters = spec.clusters.0.into_iter().map(|(name, _)| name);
    let mut defined: Vec<String> = clusters.collect();
    if defined.is_empty() {
        defined = spec.nodes.0.into_iter().map(|(name, _)| name).collect();
    }
    let list = || defined.join(", ");
    match (name, &defined[..]) {
        (_, []) => Err(InputError::new("it defines no cluster and no node type")
            .in_file(file)
            .hint("add `[clusters.NAME]` with `node = \"dgx-a100\"`, say, or name a cluster")),
        (None, [one]) => Ok(one.clone()),
        (None, [one, ..]) => {
            let file_name = file.display();
            Err(InputError::new(format!("it defines {} clusters: {}", defined.len(), list()))
                .in_file(file)
                .hint(format!(
                    "choose one as `{file_name}#{one}`, or with `--hardware {file_name} --on {one}`"
                )))
        }
        (Some(name), _) => {
            let known = defined.iter().find(|known| fold(known) == fold(name));
            known.cloned().ok_or_else(|| {
                InputError::new(format!("it defines no cluster {}", shown(name)))
                    .in_file(file)
                    .hint(format!("it defines {}", list()))
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "[clusters.one]\nnode = \"dgx-a100\"\n[clusters.two]\nnode = \"dgx-h100\"\n";

    fn asked(text: &str, file: &str, wanted: &str) -> Result<Cluster> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(file);
        std::fs::write(&path, text).unwrap();
        let wanted = wanted.replace("DIR", &directory.path().display().to_string());
        Catalogue::builtin().clone().cluster_or_file(&wanted)
    }

    #[test]
    fn a_file_stands_for_its_cluster() {
        let name = |text, file, wanted| asked(text, file, wanted).unwrap().name;
        let one = "[clusters.one]\nnode = \"dgx-a100\"\n";
        assert_eq!(name(one, "our.toml", "DIR/our.toml"), "one");
        assert_eq!(name(one, "a-file", "DIR/a-file"), "one");
        assert_eq!(name(TWO, "our.toml", "DIR/our.toml#two"), "two");
        assert_eq!(name(TWO, "our.toml", "DIR/our.toml#TWO"), "two");
        assert_eq!(name("[nodes.n]\nbased_on = \"dgx-a100\"", "our.toml", "DIR/our.toml"), "n");
        assert_eq!(name(TWO, "our.toml", "dgx_a100"), "dgx-a100");
    }

    #[test]
    fn what_is_not_plain_is_asked_for() {
        let error = |text, file, wanted| asked(text, file, wanted).unwrap_err();
        let several = error(TWO, "our.toml", "DIR/our.toml");
        assert!(several.message().contains("defines 2 clusters: one, two"), "{several}");
        assert!(several.hints()[0].contains("our.toml#one`"), "{:?}", several.hints());
        assert!(several.hints()[0].contains("--hardware"), "{:?}", several.hints());
        let other = error(TWO, "our.toml", "DIR/our.toml#three");
        assert!(other.hints()[0].contains("one, two"), "{other:?}");
        let empty = error("", "our.toml", "DIR/our.toml");
        assert!(empty.message().contains("no cluster"), "{empty}");
        let missing = error("", "our.toml", "DIR/other.toml");
        assert!(missing.path().is_some_and(|path| path.ends_with("other.toml")), "{missing}");
        let broken = error("[clusters.x]\nnodes = true", "our.toml", "DIR/our.toml");
        assert!(broken.place().is_some(), "{broken}");
        let unknown = error("", "our.toml", "dgx-b20");
        assert!(unknown.message().contains("no cluster"), "{unknown}");
    }
}
