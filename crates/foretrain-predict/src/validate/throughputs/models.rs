//! The studies' models by name.

use foretrain_workload::architecture::ResNet;
use foretrain_workload::named;

/// Parameters, each of which has a gradient. Where no profile is at hand they are counted from the
/// layers of the programs that the studies name. `None` for an unknown model.
pub(super) fn parameters(model: &str) -> Option<f64> {
    Some(match model {
        "bert" => named("bert-base").ok()?.parameters() as f64,
        "imagenet" | "ResNet-50" => named("resnet-50").ok()?.parameters() as f64,
        "cifar10" | "ResNet-18" => {
            let small = ResNet { classes: 10, ..ResNet::basic([2, 2, 2, 2]) };
            small.model(model).ok()?.parameters() as f64
        }
        // YOLOv3 for the 80 classes of COCO.
        "yolov3" => 61.9e6,
        "deepspeech2" => deep_speech_2(800.0, 5),
        "ncf" => neu_mf(32.0),
        "LM" => word_language_model(200.0),
        "Transformer" => translator(512.0),
        _ => return None,
    })
}

/// Bidirectional GRU layers over 1,312 features, 29 characters; two convolutions hold 0.25 million.
fn deep_speech_2(width: f64, layers: u32) -> f64 {
    let layer = |inputs: f64| 2.0 * 3.0 * width * (inputs + width + 2.0);
    0.25e6 + layer(1312.0) + f64::from(layers - 1) * layer(width) + 29.0 * width
}

/// `NeuMF` with three layers on `MovieLens` 1M: factors and inputs of the perceptron for each user and
/// item.
fn neu_mf(factors: f64) -> f64 {
    let (users, items) = (6040.0, 3706.0);
    let layer = |outputs: f64| (2.0 * outputs + 1.0) * outputs;
    let perceptron: f64 = [4.0, 2.0, 1.0].map(|times| layer(times * factors)).iter().sum();
    (users + items) * (factors + 4.0 * factors) + perceptron + 2.0 * factors + 1.0
}

/// Two LSTM layers between an embedding and a decoder of the 33,278 words of WikiText-2.
fn word_language_model(width: f64) -> f64 {
    let words = 33_278.0;
    words * (2.0 * width + 1.0) + 2.0 * 4.0 * width * (2.0 * width + 2.0)
}

/// Six encoder and six decoder layers; both languages of Multi30k have about 6,000 words.
fn translator(width: f64) -> f64 {
    let (attention, perceptron) = (4.0 * width * width, 2.0 * 4.0 * width * width);
    6.0 * (attention + perceptron) + 6.0 * (2.0 * attention + perceptron) + 6_000.0 * width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_programs() {
        let millions = |model| parameters(model).map(|count| (count / 1e5).round() / 10.0);
        assert_eq!(millions("ncf"), Some(1.6));
        assert_eq!(millions("LM"), Some(14.0));
        assert_eq!(millions("deepspeech2"), Some(41.2));
        assert_eq!(millions("Transformer"), Some(47.1));
        assert_eq!(millions("imagenet"), Some(25.6));
        assert_eq!(millions("unheard-of"), None);
    }
}
