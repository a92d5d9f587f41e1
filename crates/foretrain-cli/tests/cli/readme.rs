//! What README.md shows is what the command prints.

use crate::support::{answer, root};

const BEGIN: &str = "```console\n$ foretrain ";
const END: &str = "```\n";

/// README.md with the output of every `foretrain` command in it as it is now.
fn refreshed(readme: &str) -> String {
    let mut fresh = String::new();
    let mut rest = readme;
    while let Some(at) = rest.find(BEGIN) {
        let (before, block) = rest.split_at(at + BEGIN.len());
        let (command, shown) = block.split_once('\n').expect("a command is a line");
        let after = shown.find(END).expect("a block has an end");
        let arguments: Vec<&str> = command.split(' ').collect();
        fresh.push_str(&format!("{before}{command}\n{}", answer(&arguments)));
        rest = &shown[after..];
    }
    fresh + rest
}

/// With `FORETRAIN_UPDATE_README` set the file is written anew.
#[test]
fn the_tour_is_true() {
    let path = root().join("README.md");
    let readme = std::fs::read_to_string(&path).unwrap();
    let fresh = refreshed(&readme);
    assert!(fresh.matches(BEGIN).count() >= 2, "the tour shows no commands");
    if std::env::var_os("FORETRAIN_UPDATE_README").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    } else {
        assert!(
            fresh == readme,
            "README.md is out of date: run this test with FORETRAIN_UPDATE_README=1"
        );
    }
}
