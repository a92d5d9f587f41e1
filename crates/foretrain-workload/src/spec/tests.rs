use super::*;
use crate::model::Role;

#[test]
fn the_examples_are_models() {
    let decoder = include_str!("../../../../examples/models/decoder.toml");
    let model = parse(decoder, "file").unwrap();
    assert_eq!((model.name.as_str(), model.parameters()), ("my-decoder", 1_288_275_968));
    let layers = include_str!("../../../../examples/models/layers.toml");
    let model = parse(layers, "two-towers").unwrap();
    assert_eq!(model.name, "two-towers");
    let names: Vec<&str> = model.layers().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["embeddings", "tower", "tower", "tower", "score"]);
    assert_eq!(model.blocks[2].layer.role, Role::Output);
}

#[test]
fn mistakes_are_shown_with_place_and_remedy() {
    let plain = "[transformer]\nlayers = 2\nhidden = 64\nheads = 4\nvocabulary = 100\n";
    assert!(parse(plain, "plain").is_ok());
    for (text, place, said) in [
        ("".to_owned(), "", "nothing describes"),
        (
            format!("{plain}[vgg]\nconvolutions = [1, 1, 1, 1, 1]"),
            "",
            "both [transformer] and [vgg]",
        ),
        (format!("{plain}heds = 3"), "line 6", "unknown key"),
        (plain.replace("heads = 4", "heads = 5"), "hidden", "does not divide"),
        (plain.replace("layers = 2", "layers = 0"), "layers", "expected a whole number from 1"),
        (plain.replace("layers = 2", "layers = -1"), "line 2", "-1"),
        (plain.replace("hidden = 64", "hidden = 999999999999"), "hidden", "from 1 to"),
        (plain.replace("layers = 2\n", ""), "transformer", "layers"),
        (format!("parameters = 5\n{plain}"), "parameters", "not 5"),
        (format!("parameters = \"seven\"\n{plain}"), "line 1", "seven"),
        ("[[layer]]\nname = \"a\"\nops = [{ lineer = {} }]".to_owned(), "line 3", "lineer"),
        (
            "[[layer]]\nname = \"a\"\nops = [{ linear = { inputs = 0, outputs = 1 } }]".to_owned(),
            "inputs",
            "inputs is 0",
        ),
        (
            "[[layer]]\nname = \"a\"\ntokens = \"target\"\nops = [{ relu = { width = 1 } }]"
                .to_owned(),
            "layer",
            "does not have",
        ),
    ] {
        let error = parse(&text, "file").unwrap_err();
        let shown = format!("{error} {}", error.hints().join(" "));
        assert!(shown.contains(said) && shown.contains(place), "{text}\n{shown}");
    }
}

/// A style and what differs from it give the same model as the family's reader.
#[test]
fn styles_agree_with_the_families() {
    let text = "[transformer]\nstyle = \"llama\"\nlayers = 32\nhidden = 4096\nheads = 32\nkv_heads = 8\ninner = 14336\nvocabulary = 128256\n";
    let model = parse(text, "llama-3-8b").unwrap();
    let known = crate::named("llama-3-8b").unwrap();
    assert_eq!(model.blocks, known.blocks);
}
