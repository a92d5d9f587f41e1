//! Models from real execution traces: where the model is known, its parameters are exact.

use std::path::PathBuf;

use foretrain_predict::described::load;

fn data() -> Option<PathBuf> {
    let given = std::env::var_os("FORETRAIN_DATA").map(PathBuf::from);
    let near = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    Some(given.unwrap_or(near)).filter(|found| found.join("traces").is_dir())
}

#[test]
fn known_models_have_their_parameters_and_work() {
    let Some(data) = data() else {
        println!("skipped: no execution traces (set FORETRAIN_DATA)");
        return;
    };
    let param = "facebookresearch+param/et_replay/tests/inputs";
    let cases = [
        (format!("{param}/1.0.3-chakra.0.0.4/resnet_1gpu_et.json.gz"), "resnet-50", 32),
        (format!("{param}/1.1.0-chakra.0.0.4/resnet_2gpu_et.json.gz"), "resnet-50", 32),
        (format!("{param}/a883ec1__resnet_et.json.gz"), "resnet-18", 128),
        (format!("{param}/hf_GPT2_et.json.extracted/hf_GPT2_et.json.gz"), "gpt2-large", 1),
        ("sarchlab+triosim/tracer/data/graph/graph_vgg13-iter41.json.gz".into(), "vgg-13", 512),
    ];
    for (file, name, batch) in cases {
        let traced = load(data.join("traces").join(&file).to_str().expect("UTF-8")).expect(&file);
        let known = load(name).expect(name);
        assert_eq!(traced.parameters(), known.parameters(), "{file}");
        assert!(traced.source.contains(&format!("{batch} samples")), "{file}: {}", traced.source);
        // Images have one size; tokens as many as were recorded. Written out, attention is unmasked
        // and norms and losses count as they come.
        let sequence = (name == "gpt2-large").then_some(512);
        let ratio = traced.forward(None).get() / known.forward(sequence).get();
        assert!((0.99..1.05).contains(&ratio), "{file}: {ratio}");
    }
}

#[test]
fn traces_of_our_own_runs_agree_with_their_gradients() {
    let Some(data) = data() else {
        println!("skipped: no execution traces (set FORETRAIN_DATA)");
        return;
    };
    for (file, parameters) in
        [("gpt_ddp_w2_c0.5_bw200_b25_r0", 1_858_560), ("resnet_ddp_w4_c0.5_bw200_b25_r1", 696_618)]
    {
        let path = data.join(format!("lab/traces/{file}.et.json.gz"));
        let traced = load(path.to_str().expect("UTF-8")).expect(file);
        assert_eq!((traced.name.as_str(), traced.parameters()), (file, parameters));
        let doubts = traced.assumptions.iter().any(|said| said.contains("gradients"));
        assert!(!doubts, "{:?}", traced.assumptions);
    }
}
