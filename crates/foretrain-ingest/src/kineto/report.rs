//! Ledger entries for damage, and the error that strict reading gives instead.

use foretrain_core::{InputError, Ledger, Severity};

use crate::json::{Damage, DamageKind, Mending};

/// Characters of damaged text shown.
const PREVIEW: usize = 120;

/// The place of damage: byte, line and the text there.
pub(super) fn place(damage: &Damage<'_>) -> String {
    let text = String::from_utf8_lossy(damage.preview);
    let visible = |c: char| if c.is_control() { ' ' } else { c };
    let preview: String = text.chars().take(PREVIEW).map(visible).collect();
    format!("byte {} (line {}): {preview}", damage.offset, damage.line)
}

/// Each thing that was mended: code, message, count.
fn mended(mending: &Mending) -> [(&'static str, &'static str, u32); 7] {
    [
        ("control-character", "raw control character in a string", mending.control_characters),
        ("stray-quote", "quote in a string that is not escaped", mending.stray_quotes),
        ("missing-key-quote", "key that lacks a quote", mending.key_quotes),
        ("bad-escape", "backslash that begins no escape", mending.bad_escapes),
        ("not-finite", "bare NaN or infinity; the value is not available", mending.not_finite),
        ("bad-utf8", "bytes that are not UTF-8; replaced", mending.bad_utf8),
        ("stray-comma", "comma too many or too few", mending.commas),
    ]
}

/// Records damage in the ledger.
pub(super) fn record(damage: &Damage<'_>, ledger: &mut Ledger) {
    match &damage.kind {
        DamageKind::Mended(mending) => {
            ledger.record(Severity::Repaired, "repaired-event", "event that was not valid JSON");
            for (code, message, count) in mended(mending) {
                if count > 0 {
                    let place = place(damage);
                    ledger.record_many(Severity::Repaired, code, message, 1, Some(place));
                }
            }
        }
        DamageKind::Skipped => ledger.record_at(
            Severity::Dropped,
            "skipped-event",
            "text that cannot be read, skipped up to the next event",
            || place(damage),
        ),
        DamageKind::NotAnObject => ledger.record_at(
            Severity::Dropped,
            "not-an-event",
            "element of the event list that is no event",
            || place(damage),
        ),
        DamageKind::Truncated => ledger.record_at(
            Severity::Warning,
            "truncated",
            "the file breaks off before its end; what comes before was read",
            || match damage.cause {
                "" => place(damage),
                cause => format!("{}: {cause}", place(damage)),
            },
        ),
    }
}

/// The error of strict reading.
pub(super) fn refuse(damage: &Damage<'_>, path: &str) -> InputError {
    let what = match &damage.kind {
        DamageKind::Mended(mending) => mended(mending)
            .iter()
            .find(|(.., count)| *count > 0)
            .map_or("damage", |(_, what, _)| what),
        DamageKind::Skipped => "text that is not JSON",
        DamageKind::NotAnObject => "an element of the event list that is no event",
        DamageKind::Truncated => "the file breaks off before its end",
    };
    InputError::new(format!("damaged trace: {what}"))
        .at(format!("byte {} (line {})", damage.offset, damage.line))
        .in_file(path)
        .hint("read it without strict checking to mend or skip what is damaged")
}
