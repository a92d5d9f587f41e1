use super::*;

#[test]
fn every_model_has_the_parameters_that_are_published() {
    let mut wrong = Vec::new();
    for known in library() {
        if let Err(error) = known.model() {
            wrong.push(format!("{}: {error}", known.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A head of one's own changes the last layer only.
#[test]
fn classes_can_be_set() {
    let known = known("resnet-50").unwrap();
    let (usual, own) = (known.model().unwrap(), known.for_classes(2).unwrap());
    assert_eq!(usual.parameters() - own.parameters(), 998 * 2049);
    assert!(known.for_classes(0).is_err());
    let error = super::known("llama-3-8b").unwrap().for_classes(2).unwrap_err();
    assert!(error.to_string().contains("classes"), "{error}");
}

/// Names of people's scripts and papers find the model that they mean.
#[test]
fn names_forgive_case_separators_and_owners() {
    for (wanted, name) in [
        ("GPT3-175B", "gpt-3-175b"),
        ("meta-llama/Llama-2-7b", "llama-2-7b"),
        ("Meta-Llama-3-8B", "llama-3-8b"),
        ("resnet50", "resnet-50"),
        ("deepseek_r1", "deepseek-v3"),
    ] {
        assert_eq!(named(wanted).unwrap().name, name, "{wanted}");
    }
}

#[test]
fn unknown_names_are_met_with_the_nearest() {
    let hints = |name: &str| named(name).unwrap_err().hints().join(" ");
    assert!(hints("lama-2-7b").contains("llama-2-7b"), "{}", hints("lama-2-7b"));
    assert!(hints("t5-v1.1").contains("t5-v1.1-base"));
    assert!(hints("").contains("foretrain models"));
}

/// Every model can be asked for its work, has a last layer with a loss or a result, and its view by
/// tensors loses nothing.
#[test]
fn every_model_is_whole() {
    for known in library() {
        let model = known.model().unwrap();
        let profile = model.profile(None);
        assert_eq!(profile.parameters(), model.parameters(), "{}", known.name);
        let (work, forward) = (profile.forward().get(), model.forward(None).get());
        assert!(forward > 0.0 && (work / forward - 1.0).abs() < 1e-9, "{}", known.name);
        assert!(model.active_parameters() <= model.parameters(), "{}", known.name);
        assert!(model.body_layers() > 0 && !model.source.is_empty(), "{}", known.name);
        let mut names: Vec<&str> = Vec::new();
        for layer in model.layers() {
            let clash = names.contains(&layer.name.as_str());
            let same = |other: &&std::sync::Arc<crate::model::Layer>| other.name == layer.name;
            assert!(!clash || model.layers().filter(same).all(|other| other == layer));
            names.push(&layer.name);
        }
    }
}
