use foretrain_core::{Bytes, DType, Nanos};
use proptest::prelude::*;

use super::oracle::{Always, Chance, Never, Table, Trial};
use super::*;

/// A model of square layers, each of so many channels.
fn model(name: &str, sides: &[u64]) -> ModelLayers {
    let layer = |(number, &side): (usize, &u64)| {
        let signature = Signature {
            kind: Kind::Linear,
            shape: vec![side, side],
            bias: false,
            dtype: DType::F32,
            geometry: None,
        };
        ModelLayer { name: number.to_string(), bytes: signature.bytes(), signature }
    };
    let layers = sides.iter().enumerate().map(layer).collect();
    ModelLayers { name: name.into(), layers, private: Bytes::ZERO }
}

fn workload(models: &[&[u64]]) -> Workload {
    let models = models.iter().enumerate().map(|(number, sides)| model(&number.to_string(), sides));
    Workload::new(models.collect(), Rule::Exact).unwrap()
}

fn options(workload: &Workload) -> PlanOptions {
    PlanOptions {
        epochs: 10,
        epoch_times: vec![Nanos::from_secs_f64(1.0); workload.models().len()],
    }
}

/// Sizes in layers of 4 bytes times the square of their side.
fn of(side: u64, layers: u64) -> Bytes {
    Bytes::new(4 * side * side * layers)
}

#[test]
fn the_nth_layer_of_a_kind_goes_with_the_nth_elsewhere() {
    let workload = workload(&[&[8, 8, 4], &[8, 4, 4, 8, 8], &[8, 2]]);
    let groups = workload.groups();
    let seen: Vec<_> = groups
        .iter()
        .map(|group| (group.signature.shape[0], group.models.clone(), group.instances.len()))
        .collect();
    assert_eq!(seen, [(8, vec![0, 1, 2], 1), (8, vec![0, 1], 1), (4, vec![0, 1], 1)]);
    assert_eq!(groups[1].instances[0].places, ["1", "3"]);
    assert_eq!(workload.most_saved(), of(8, 3) + of(4, 1));
}

/// The published code never appends its last run of equal layers.
#[test]
fn the_smallest_group_is_kept() {
    let workload = workload(&[&[2], &[2]]);
    assert_eq!(workload.groups().len(), 1);
    assert_eq!(workload.most_saved(), of(2, 1));
}

#[test]
fn a_pair_shares_what_both_have_and_a_model_all_with_itself() {
    let workload = workload(&[&[8, 8, 4], &[8, 4, 4, 8, 8]]);
    let pairs = workload.pairs();
    let [own, both, other] = pairs.as_slice() else { panic!("three pairs, not {}", pairs.len()) };
    assert_eq!((own.a, own.b, own.layers, own.bytes), (0, 0, 3, of(8, 2) + of(4, 1)));
    assert_eq!((both.layers, both.bytes), (3, of(8, 2) + of(4, 1)));
    assert_eq!(other.layers, 5);
}

fn conv(stride: u64, geometry: bool) -> Signature {
    Signature {
        kind: Kind::Convolution,
        shape: vec![128, 64, 3, 3],
        bias: true,
        dtype: DType::F16,
        geometry: geometry.then_some(Geometry { stride, padding: (1, 1), dilation: 1, groups: 1 }),
    }
}

fn of_one(signature: Signature) -> ModelLayers {
    let bytes = signature.bytes();
    let name = signature.to_string();
    ModelLayers {
        layers: vec![ModelLayer { name: "conv".into(), signature, bytes }],
        name,
        private: Bytes::ZERO,
    }
}

#[test]
fn strides_count_unless_the_rule_lets_them_differ() {
    let models = vec![of_one(conv(1, true)), of_one(conv(2, true))];
    let saved = |rule| Workload::new(models.clone(), rule).unwrap().most_saved();
    assert_eq!(saved(Rule::Exact), Bytes::ZERO);
    assert_eq!(saved(Rule::AnyStride), conv(1, true).bytes());
    assert_eq!(saved(Rule::Weights), conv(1, true).bytes());
    assert_eq!(conv(2, true).to_string(), "conv 64->128 3x3 stride 2 padding 1 bias f16");
}

/// A file of weights does not tell its strides, so none are compared, for all models alike.
#[test]
fn weights_alone_weaken_the_rule_for_all() {
    let models = vec![of_one(conv(1, true)), of_one(conv(2, false)), of_one(conv(2, true))];
    let name = models[1].name.clone();
    let workload = Workload::new(models, Rule::Exact).unwrap();
    assert_eq!((workload.rule(), workload.weakened_by()), (Rule::Weights, Some(name.as_str())));
    assert_eq!(workload.groups()[0].models, [0, 1, 2]);
}

#[test]
fn a_plan_takes_the_largest_group_first_and_halves_what_fails() {
    // Group of four layers of 8 in models 0 and 1; one of 6 in 1 and 2.
    let workload = workload(&[&[8, 8, 8, 8], &[8, 8, 8, 8, 6], &[6]]);
    let rows = "layer,model,layers,probability,epochs\n*,0,1,1,3\n*,0,,0,\n*,*,,1,2\n";
    let mut table = Table::parse(rows, 7, 0).unwrap();
    assert!(!table.is_random());
    let plan = plan(&workload, &options(&workload), &mut table);
    let seen: Vec<_> = plan
        .steps
        .iter()
        .map(|step| (step.group, step.layers, step.kept.len(), step.epochs, step.trained))
        .collect();
    // Four layers fail in one model of two, so neither keeps them; then two, then one is kept. The
    // last trial trains the model that shares through another, too.
    assert_eq!(seen, [(0, 4, 0, 10, 2), (0, 2, 0, 10, 2), (0, 1, 2, 3, 2), (1, 1, 2, 2, 3)]);
    assert_eq!(plan.saved(), of(8, 1) + of(6, 1));
    assert_eq!(plan.time(), Nanos::from_secs_f64(2.0 * 23.0 + 3.0 * 2.0));
}

#[test]
fn a_plan_moves_on_where_the_next_group_promises_more() {
    // Half of the two layers of 8 is 1 x 256 bytes; the next group has 400.
    let workload = workload(&[&[8, 8, 10], &[8, 8, 10]]);
    let plan = plan(&workload, &options(&workload), &mut Never);
    let tried: Vec<_> = plan.steps.iter().map(|step| (step.group, step.layers)).collect();
    assert_eq!(tried, [(0, 2), (1, 1)]);
    assert_eq!(plan.saved(), Bytes::ZERO);
}

#[test]
fn tables_of_outcomes_say_what_is_wrong() {
    let error = |text: &str| Table::parse(text, 1, 0).unwrap_err().to_string();
    assert!(error("layer,model,probability\n*,*,1.5\n").contains("line 2"));
    assert!(error("layer,model,probability\n\n*,*,0.5\n*,*,2\n").contains("line 4"));
    assert!(error("layer,model,layers,probability\n*,*,0,1\n").contains("at most 0 layers"));
    assert!(error("layer,model,probability\n*,*,x\n").contains("line 2"));
    assert!(error("layer,model,probability\n").contains("without rows"));
    assert!(error("a,b\n1,2\n").contains("line"));
    assert!(error("layer,model,probability\n*,*,NaN\n").contains("probability"));
}

/// A slip in a name would make a row match nothing, and its trials fail.
#[test]
fn tables_of_outcomes_speak_of_layers_and_models_that_there_are() {
    let workload = workload(&[&[8, 8], &[8, 4]]);
    let check = |row: &str| {
        let text = format!("layer,model,probability\n*,*,1\n{row},1\n");
        Table::parse(&text, 1, 0).unwrap().check(&workload)
    };
    assert_eq!(check("linear 8->8,1"), Ok(Vec::new()));
    assert_eq!(check("*,1"), Ok(Vec::new()));
    let error = check("linear 8->9,1").unwrap_err();
    assert_eq!(error.to_string(), "no model has a layer \"linear 8->9\" (at line 3)");
    assert_eq!(error.hints(), ["did you mean `linear 8->8`?"]);
    let error = check("*,vgg").unwrap_err();
    assert!(error.to_string().contains("no model is called \"vgg\""), "{error}");
    // It is there, and nothing asks for it.
    let odd = check("linear 4->4,*").unwrap();
    assert_eq!(odd, ["line 3 answers nothing, as no two models have linear 4->4"]);
    assert!(check("linear 4->4,0").unwrap()[0].contains("0 shares linear 4->4 with no other"));
}

#[test]
fn chance_answers_a_question_always_alike() {
    let signature = conv(1, true);
    let trial = Trial { signature: &signature, layers: 2, model: "a" };
    let ask = |seed| Chance::new(0.5, 4, seed).unwrap().retrain(&trial);
    assert_eq!(ask(1), ask(1));
    let met = (0..1000).filter(|&seed| ask(seed).is_some()).count();
    assert!((420..580).contains(&met), "{met}");
    assert!(Chance::new(f64::NAN, 1, 0).is_err());
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let sides = prop::collection::vec(1_u64..6, 1..8);
    prop::collection::vec(sides, 1..6).prop_map(|models| {
        let models: Vec<&[u64]> = models.iter().map(Vec::as_slice).collect();
        workload(&models)
    })
}

proptest! {
    /// No more can be saved than all copies but one, and no group shares a layer twice.
    #[test]
    fn savings_are_less_than_the_whole(workload in any_workload()) {
        let largest = workload.models().iter().map(ModelLayers::bytes).max().unwrap();
        prop_assert!(workload.most_saved() <= workload.bytes() - largest);
        for pair in workload.pairs() {
            prop_assert!(pair.bytes <= workload.models()[pair.a].bytes());
            prop_assert!(pair.bytes <= workload.models()[pair.b].bytes());
        }
        if let [a, b] = workload.models() {
            let both = workload.pairs()[1];
            prop_assert_eq!(both.bytes, workload.most_saved(), "{} {}", a.name, b.name);
        }
    }

    /// The curve never falls, ends below what is possible, and is reached by the oracle that always
    /// agrees; equal seeds give equal plans.
    #[test]
    fn plans_rise_to_what_is_possible(workload in any_workload(), seed: u64, p in 0.0..=1.0_f64) {
        let options = options(&workload);
        let all = plan(&workload, &options, &mut Always { epochs: 1 });
        prop_assert_eq!(all.saved(), workload.most_saved());
        let draw = || plan(&workload, &options, &mut Chance::new(p, 2, seed).unwrap());
        let some = draw();
        prop_assert!(some.saved() <= workload.most_saved());
        prop_assert!(some.steps.windows(2).all(|pair| pair[0].saved <= pair[1].saved));
        prop_assert!(some.steps.iter().all(|step| step.kept.len() != 1 && step.time > Nanos::ZERO));
        prop_assert_eq!(draw(), some);
    }
}
