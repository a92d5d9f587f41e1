//! The command as a library of other programs.

use std::ffi::OsString;
use std::sync::Arc;

use foretrain_cli::{Kept, Refused, Session, ask, read};

use super::support::{TINY, root, run};

fn arguments(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn example() -> String {
    root().join(TINY).display().to_string()
}

fn asked(words: &[&str], session: &Session) -> Kept {
    ask(&arguments(words), session).unwrap_or_else(|refused| panic!("{words:?}: {refused:?}"))
}

#[test]
fn answers_are_those_of_the_command() {
    let example = example();
    let verbs: [&[&str]; 6] = [
        &["inspect", &example],
        &["predict", &example, "--on", "dgx-a100", "--gpus", "2,16"],
        &["whatif", &example],
        &["estimate", "llama-3-8b", "--on", "dgx-h100", "--gpus", "64", "--batch", "512"],
        &["hardware", "list"],
        &["strategies"],
    ];
    for words in verbs {
        let kept = asked(words, &Session::default());
        let said = run(words);
        assert_eq!(
            (kept.text.as_str(), kept.holds),
            (said.out.as_str(), said.code == 0),
            "{words:?}"
        );
        let said = run(&[words, &["--json"]].concat());
        assert_eq!(kept.json.as_deref(), Some(said.out.as_str()), "{words:?}");
        let html = kept.html.expect("a page");
        assert!(
            html.starts_with("<div class=\"foretrain\">") && html.contains("<table>"),
            "{html}"
        );
    }
}

#[test]
fn what_was_read_is_asked_many_times() {
    let example = example();
    let input = read(&arguments(&[&example]), &Session::default()).expect("readable");
    let held = vec![("mine".to_owned(), Arc::clone(&input))];
    let session = Session { held, ..Session::default() };
    let verbs: [&[&str]; 4] = [
        &["inspect"],
        &["predict", "--on", "dgx-a100", "--gpus", "16"],
        &["whatif"],
        &["plan", "--on", "dgx-a100", "--gpus", "16"],
    ];
    for words in verbs {
        let of_held: Vec<&str> = words.iter().copied().chain(["--", "mine"]).collect();
        let of_files: Vec<&str> = words.iter().copied().chain(["--", &example]).collect();
        assert_eq!(asked(&of_held, &session), asked(&of_files, &session), "{words:?}");
    }
    // The session still holds it.
    assert!(Arc::strong_count(&input) >= 2);
}

#[test]
fn refusals_are_told_apart() {
    let refused =
        |words: &[&str]| ask(&arguments(words), &Session::default()).expect_err("refused");
    match refused(&["predict", "nowhere", "--on", "dgx-a100", "--gpus", "2"]) {
        Refused::Input(error) => assert!(error.to_string().contains("nowhere"), "{error}"),
        Refused::Usage(text) => panic!("{text}"),
    }
    for words in [&["predicted"][..], &["predict"], &["--help"]] {
        assert!(
            matches!(refused(words), Refused::Usage(text) if text.contains("Usage")),
            "{words:?}"
        );
    }
}

#[test]
fn answers_of_one_form_are_text() {
    let kept = asked(&["fleet", "synthesize", "--jobs", "3"], &Session::default());
    assert!(kept.json.is_none() && kept.html.is_none() && kept.holds);
    assert_eq!(kept.text.lines().count(), 4, "{}", kept.text);
}
