//! Values of Parquet columns as text.

use std::io::Write;

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::date32_to_datetime;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};

/// Whether [`write`] knows a type.
pub(super) fn is_read(kind: &DataType) -> bool {
    use DataType as D;
    match kind {
        D::List(of) => is_read(of.data_type()),
        D::Utf8 | D::LargeUtf8 | D::Binary | D::FixedSizeBinary(_) | D::Boolean | D::Date32 => true,
        D::Timestamp(..) | D::Time32(_) | D::Time64(_) | D::Null => true,
        other => other.is_numeric(),
    }
}

/// A type in few words.
pub(super) fn name_of(kind: &DataType) -> String {
    match kind {
        DataType::Struct(fields) => format!("struct of {} fields", fields.len()),
        DataType::List(of) => format!("list of {}", name_of(of.data_type())),
        DataType::Map(..) => "map".into(),
        other => other.to_string(),
    }
}

/// Writes a value as text: a list as its values with commas between, nothing for no value.
pub(super) fn write(array: &ArrayRef, at: usize, cell: &mut Vec<u8>) {
    if array.is_null(at) {
        return;
    }
    // Writing to memory does not fail.
    macro_rules! number {
        ($kind:ty) => {{
            let _ = write!(cell, "{}", array.as_primitive::<$kind>().value(at));
        }};
    }
    macro_rules! decimal {
        ($kind:ty) => {
            cell.extend_from_slice(array.as_primitive::<$kind>().value_as_string(at).as_bytes())
        };
    }
    match array.data_type() {
        DataType::Utf8 => cell.extend_from_slice(array.as_string::<i32>().value(at).as_bytes()),
        DataType::LargeUtf8 => {
            cell.extend_from_slice(array.as_string::<i64>().value(at).as_bytes());
        }
        DataType::Binary => cell.extend_from_slice(array.as_binary::<i32>().value(at)),
        DataType::FixedSizeBinary(_) => {
            for byte in array.as_fixed_size_binary().value(at) {
                let _ = write!(cell, "{byte:02x}");
            }
        }
        DataType::List(_) => {
            let values = array.as_list::<i32>().value(at);
            for value in 0..values.len() {
                if value > 0 {
                    cell.push(b',');
                }
                write(&values, value, cell);
            }
        }
        DataType::Boolean => {
            let _ = write!(cell, "{}", array.as_boolean().value(at));
        }
        DataType::Date32 => {
            if let Some(day) = date32_to_datetime(array.as_primitive::<Date32Type>().value(at)) {
                let _ = write!(cell, "{}", day.date());
            }
        }
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float16 => number!(Float16Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Decimal32(..) => decimal!(Decimal32Type),
        DataType::Decimal64(..) => decimal!(Decimal64Type),
        DataType::Decimal128(..) => decimal!(Decimal128Type),
        DataType::Decimal256(..) => decimal!(Decimal256Type),
        DataType::Timestamp(TimeUnit::Second, _) => number!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => number!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => number!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => number!(TimestampNanosecondType),
        DataType::Time32(TimeUnit::Second) => number!(Time32SecondType),
        DataType::Time32(_) => number!(Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => number!(Time64MicrosecondType),
        DataType::Time64(_) => number!(Time64NanosecondType),
        _ => {}
    }
}
