//! What README.md and pages of the book show is what the command prints.

use crate::support::{answer, root};

const BEGIN: &str = "```console\n$ foretrain ";
const END: &str = "```\n";

/// A page with the output of every `foretrain` command in it as it is now.
fn refreshed(page: &str) -> String {
    let mut fresh = String::new();
    let mut rest = page;
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
fn check(file: &str, least: usize) {
    let path = root().join(file);
    let written = std::fs::read_to_string(&path).expect("the page is there");
    let fresh = refreshed(&written);
    assert!(fresh.matches(BEGIN).count() >= least, "{file} shows no commands");
    if std::env::var_os("FORETRAIN_UPDATE_README").is_some() {
        std::fs::write(&path, &fresh).expect("it can be written");
    } else {
        assert!(
            fresh == written,
            "{file} is out of date: run this test with FORETRAIN_UPDATE_README=1"
        );
    }
}

#[test]
fn the_tour_is_true() {
    check("README.md", 2);
}

#[test]
fn the_books_pages_are_true() {
    check("docs/estimate.md", 2);
    check("docs/plan.md", 2);
    check("docs/models.md", 1);
    check("docs/fleet.md", 7);
    check("docs/layer-sharing.md", 2);
    check("docs/scheduling.md", 1);
    check("docs/utilisation.md", 1);
}
