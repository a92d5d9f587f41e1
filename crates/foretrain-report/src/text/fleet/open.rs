//! An opened row, for people.

use foretrain_core::Bytes;
use foretrain_core::units::significant;
use foretrain_predict::jobs::open::Opened;

use crate::text::TextStyle;
use crate::text::sheet::Sheet;
use crate::text::units::ms_unit;

/// What the graph of a row's step holds, and what it rests on.
pub fn fleet_open(opened: &Opened, style: TextStyle) -> String {
    let mut sheet = Sheet::new(style);
    let (work, step) = (&opened.work, &opened.step);
    let scale = opened.scale.unwrap_or(1.0);
    sheet.heading(&format!("A step of one replica: job {}", opened.id));
    sheet.field("class", &format!("{}, cNodes: {}", work.class.name(), work.cnodes));
    if let Some(model) = &opened.model {
        sheet.field("features", &format!("those that the row lacks are of {model}"));
    }
    let parts = [
        ("input", work.input.to_string(), step.input),
        ("compute", format!("{} GFLOP", significant(work.flops.get() / 1e9, 4)), step.flops),
        ("memory", work.memory_access.to_string(), step.memory),
    ];
    for (name, amount, time) in parts {
        sheet.field(name, &format!("{amount} in {}", ms_unit(time.scale(scale))));
    }
    let together = format!("{}, without any exchange", ms_unit(opened.time));
    sheet.field("step", &together);
    let timed = match opened.scale {
        None => "by the characterisation".to_owned(),
        Some(scale) => format!(
            "{} times the characterisation's, so that the whole step, its exchange not hidden, takes the row's step time (measured or estimated: the table does not say)",
            significant(scale, 4)
        ),
    };
    sheet.field("times", &timed);
    let gradients = &opened.gradients;
    let size =
        gradients.value.map_or_else(|| "unknown".to_owned(), |bytes: Bytes| bytes.to_string());
    sheet.field("gradients", &format!("{size}, {}", gradients.how));
    for warning in &opened.warnings {
        sheet.warning(warning);
    }
    sheet.finish()
}
