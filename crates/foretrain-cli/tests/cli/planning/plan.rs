//! `plan`.

use serde_json::Value;

use super::{LAB, MODEL, document, words};
use crate::support::{answer, run};

fn planned(line: &str) -> Value {
    document(&[&["plan", MODEL, "--on", LAB], &words(line)[..]].concat(), 0)
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

#[test]
fn pages() {
    let page = |line: &str| answer(&[&["plan", MODEL, "--on", LAB], &words(line)[..]].concat());
    let one = page("--gpus 8 --batch 64 --pin cp=1 --explain pp=4,mbs=1 --top 5");
    insta::assert_snapshot!("plan", one);
    let several = page(
        "--on dgx-a100 --gpus 8,16 --batch 64 --pin cp=1,pp=1 --tokens 20B --by 2d --price 1.5 --top 3",
    );
    insta::assert_snapshot!("plan_places", several);
}

/// The ranking is one of times, but for runs of equal times; every layout is counted once; the
/// winner's estimate is that of `estimate`.
#[test]
fn rankings_hold_together() {
    let document = planned("--gpus 8 --batch 64 --pin cp=1 --top 1000000");
    let place = &document["places"][0];
    let ranked = place["ranked"].as_array().unwrap();
    let count = |key: &str| place[key].as_u64().unwrap();
    assert_eq!(ranked.len() as u64, count("ranked_count"));
    assert_eq!(count("looked_at"), count("layouts"));
    assert_eq!(
        count("looked_at"),
        count("ranked_count") + count("illegal") + count("too_large") + count("hopeless")
    );
    let times: Vec<f64> = ranked.iter().map(|one| number(&one["step_time"]["value_ns"])).collect();
    for pair in times.windows(2) {
        assert!(pair[1] >= pair[0] / 1.005, "{pair:?}");
    }
    let winner = &place["winner"];
    assert_eq!(winner["text"], ranked[0]["layout"]);
    let layout = winner["text"].as_str().unwrap();
    let line = format!("estimate {MODEL} --on {LAB} --gpus 8 --batch 64 --parallel {layout}");
    let estimate = self::document(&words(&line), 0);
    assert_eq!(estimate["layout"], *winner);
    // What the other spends more adds up to the difference.
    let rival = &document["runner_up"];
    let more: f64 =
        rival["differences"].as_array().unwrap().iter().map(|part| number(&part["time_ns"])).sum();
    let step = |laid: &Value| number(&laid["step_time"]["value_ns"]);
    assert_eq!(more, step(&rival["layout"]) - step(winner));
    // Nothing on the front is beaten by anything in the ranking.
    for item in document["front"].as_array().unwrap() {
        let own = &item["candidate"];
        let beaten = ranked.iter().any(|other| {
            number(&other["step_time"]["value_ns"]) < step(own)
                && number(&other["memory_bytes"]) < number(&own["memory_bytes"])
        });
        assert!(!beaten, "{own}");
    }
}

#[test]
fn limits_are_kept() {
    let all = planned("--gpus 8 --batch 64 --pin cp=1");
    let winner = number(&all["places"][0]["ranked"][0]["memory_bytes"]);
    let limit = winner * 0.9;
    let line = format!("--gpus 8 --batch 64 --pin cp=1 --top 1000000 --memory {}", limit as u64);
    let less = planned(&line);
    for one in less["places"][0]["ranked"].as_array().unwrap() {
        assert!(number(&one["memory_bytes"]) <= limit);
    }
    let pinned = planned("--gpus 8 --batch 64 --pin tp=2,pp=2,recompute=full --top 1000000");
    for one in pinned["places"][0]["ranked"].as_array().unwrap() {
        let layout = one["layout"].as_str().unwrap();
        assert!(layout.starts_with("tp=2,pp=2,") && layout.contains("recompute=full"), "{layout}");
    }
}

/// Where nothing fits the answer is no, the nearest layout, and the size at which something would.
#[test]
fn nothing_fits() {
    let line = format!("plan {MODEL} --on {LAB} --gpus 1 --batch 64 --memory 10GiB --pin zero=1");
    let document = document(&words(&line), 1);
    assert_eq!(document["best"], Value::Null);
    let needs = &document["needs"];
    assert!(number(&needs["memory_bytes"]) > 10.0 * 1024_f64.powi(3), "{needs}");
    let more = needs["more_devices"].as_u64().expect("a size that fits");
    let line = line.replace("--gpus 1 ", &format!("--gpus {more} "));
    self::document(&words(&line), 0);
    let page = run(&words(&line.replace(&format!("--gpus {more} "), "--gpus 1 ")));
    assert_eq!(page.code, 1);
    assert!(page.out.contains("Nothing fits") && page.out.contains("would do"), "{}", page.out);
}

/// The cheapest way to finish in time is the cheapest of those that are in time.
#[test]
fn deadlines_and_prices_decide() {
    let ask = |by: &str| {
        let line = format!("--gpus 4,8,16 --batch 64 --pin cp=1,pp=1 --tokens 20B --by {by}");
        planned(&line)
    };
    let cost = |place: &Value| number(&place["to_finish"]["dollars"]);
    let last = |place: &Value| number(&place["to_finish"]["seconds"]["high"]);
    let loose = ask("100d");
    assert_eq!(loose["choice"], "cheapest-in-time");
    let places = loose["places"].as_array().unwrap();
    let best = &places[loose["best"].as_u64().unwrap() as usize];
    assert!(places.iter().all(|place| cost(place) >= cost(best)));
    // A deadline that only the fastest meets.
    let mut ends: Vec<f64> = places.iter().map(last).collect();
    ends.sort_by(f64::total_cmp);
    let tight = ask(&format!("{}s", (ends[0] * 1.001) as u64));
    let best = &tight["places"][tight["best"].as_u64().unwrap() as usize];
    assert_eq!(last(best), ends[0]);
    let line = "--gpus 4,8 --batch 64 --pin cp=1,pp=1 --tokens 20B --by 1min";
    let late = document(&[&["plan", MODEL, "--on", LAB], &words(line)[..]].concat(), 1);
    assert_eq!(late["choice"], "none-in-time");
    // Prices given by name decide between clusters.
    let line = "--on dgx-a100 --gpus 8 --batch 64 --pin cp=1,pp=1 --tokens 20B --price lab=9 --price dgx-a100=1";
    let line = line.replace("lab=", &format!("{LAB}="));
    let document = planned(&line);
    assert_eq!((&document["choice"], &document["best"]), (&"cheapest".into(), &1.into()));
}

/// One place says as much of time and cost as several do.
#[test]
fn one_place_says_what_it_takes_to_finish() {
    let ask = |by: &str| {
        let line = format!("plan {MODEL} --on {LAB} --gpus 8 --batch 64 --pin cp=1,pp=1 {by}");
        run(&words(&line))
    };
    let plain = ask("");
    assert!(!plain.out.contains("B tokens take"), "{}", plain.out);
    let open = ask("--tokens 20B --price 2");
    assert_eq!(open.code, 0);
    assert!(open.out.contains("20.0 B tokens take") && open.out.contains("cost $"), "{}", open.out);
    let loose = ask("--tokens 20B --by 1000d");
    assert!(loose.code == 0 && loose.out.contains("That is in time"), "{}", loose.out);
    let tight = ask("--tokens 20B --by 1min");
    assert!(tight.code == 1 && tight.out.contains("That is too late"), "{}", tight.out);
}

#[test]
fn any_layout_can_be_explained() {
    let explained = |layout: &str| {
        let line = format!("--gpus 8 --batch 64 --pin cp=1,pp=1 --memory 30GiB --explain {layout}");
        planned(&line)["explained"].clone()
    };
    let inside = explained("tp=2,sp,mbs=4,zero=1");
    assert!(inside["rank"].as_u64().unwrap() > 1);
    assert!(inside["beside_winner"]["differences"].as_array().unwrap().len() > 2);
    // Outside the pins, and too large.
    let outside = explained("pp=4,mbs=1");
    assert_eq!(outside["rank"], Value::Null);
    assert!(outside["layout"]["step_time"]["value_ns"].as_i64().unwrap() > 0);
    let large = explained("mbs=8");
    assert!(number(&large["layout"]["memory"][0]["used"]["value_bytes"]) > 30.0 * 1024_f64.powi(3));
    assert!(!large["changes"].as_array().unwrap().is_empty());
    let illegal = explained("tp=3");
    assert!(
        illegal["refused"].as_str().unwrap().contains("does not divide 8 devices"),
        "{illegal}"
    );
    let heads = explained("tp=8,dp=1,cp=1,ep=2");
    assert!(heads["refused"].as_str().unwrap().contains("no experts"), "{heads}");
}

/// Ctrl-C ends a long search with the best so far.
#[cfg(unix)]
#[test]
fn interrupted_searches_answer_with_the_best_so_far() {
    let line = "plan deepseek-v3 --on dgx-h100 --on dgx-a100 --gpus 64..16384 --batch 16384 --schedules all";
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_foretrain"))
        .args(words(line))
        .current_dir(crate::support::root())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.unwrap().success());
    let said = child.wait_with_output().unwrap();
    let page = String::from_utf8(said.stdout).unwrap();
    assert!(page.contains("warning: stopped after ") && page.contains("the best so far"), "{page}");
    // On a busy machine nothing may have been found yet.
    assert!(matches!(said.status.code(), Some(0 | 1)), "{:?}", said.status);
}
