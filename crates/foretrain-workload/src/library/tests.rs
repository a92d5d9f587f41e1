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
