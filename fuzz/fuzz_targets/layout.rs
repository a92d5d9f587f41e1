//! No text makes the reader of layouts panic; a layout that is read reads back from its own text, and
//! is judged without a panic.
#![no_main]

use foretrain_hardware::Catalogue;
use foretrain_plan::check::check_layout;
use foretrain_plan::{Training, Wish};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u32, &str)| {
    let (devices, text) = input;
    let Ok(wish) = text.parse::<Wish>() else { return };
    let Ok(layout) = wish.complete(devices) else { return };
    let again: Wish = layout.to_string().parse().expect("its text is one");
    let again = again.complete(devices).expect("it is complete");
    assert_eq!(again.to_string(), layout.to_string());
    let model = foretrain_workload::load("gpt-3-125m").expect("in the library");
    let cluster = Catalogue::builtin().cluster("dgx-a100").expect("in the catalogue");
    let training = Training::of(u64::from(devices), 1024);
    let _ = check_layout(&layout, &model, &training, &cluster);
});
