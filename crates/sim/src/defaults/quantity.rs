//! Quantities in their canonical form: `1000m` is `1`, `1024Mi` is `1Gi`.

use serde_json::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Binary,
    Exponent,
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

const MAPS: [&str; 10] = [
    "limits",
    "requests",
    "capacity",
    "hard",
    "overhead",
    "default",
    "defaultRequest",
    "max",
    "min",
    "maxLimitRequestRatio",
];
const SINGLE: [&str; 3] = ["sizeLimit", "divisor", "averageValue"]; // fields that are quantities

const ONE: i128 = 1_000_000_000; // amounts are counted in billionths

pub(super) fn canonicalize(value: &mut Value) {
    let text = match &*value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if let Some(text) = canonical(&text) {
        *value = text.into();
    }
}

/// Turns numbers into strings where a quantity is expected: typed decoders accept only strings.
pub(crate) fn numbers_to_texts(value: &mut Value) {
    let to_text = |value: &mut Value| {
        if value.is_number() {
            *value = value.to_string().into();
        }
    };
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if MAPS.contains(&field.as_str())
                    && let Value::Object(amounts) = value
                {
                    amounts.values_mut().for_each(to_text);
                } else if SINGLE.contains(&field.as_str()) {
                    to_text(value);
                } else if field == "target"
                    && let Some(amount) = value.get_mut("value")
                {
                    to_text(amount);
                }
                numbers_to_texts(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(numbers_to_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

pub(super) fn canonicalize_all(map: Option<&mut Value>) {
    map.and_then(Value::as_object_mut).into_iter().flatten().for_each(|(_, value)| canonicalize(value));
}

pub(super) fn is_same(a: &Value, b: &Value) -> bool {
    let amount = |value: &Value| value.as_str().and_then(parse).map(|(amount, _)| amount);
    amount(a).is_some() && amount(a) == amount(b)
}

fn canonical(text: &str) -> Option<String> {
    let (amount, format) = parse(text)?;
    if amount == 0 {
        return Some("0".into());
    }
    if format == Format::Binary && amount.abs() >= 1024 * ONE && amount % ONE == 0 {
        let mut number = amount / ONE;
        let mut suffix = "";
        for next in BINARY {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            suffix = next;
        }
        return Some(format!("{number}{suffix}"));
    }
    let mut number = amount;
    let mut at = 0;
    while number % 1000 == 0 && at + 1 < DECIMAL.len() {
        number /= 1000;
        at += 1;
    }
    let (suffix, exponent) = DECIMAL[at];
    Some(match format {
        Format::Exponent if exponent != 0 => format!("{number}e{exponent}"),
        Format::Exponent | Format::Decimal | Format::Binary => format!("{number}{suffix}"),
    })
}

/// Returns the amount in billionths and its format, or `None` if it is no quantity or exceeds 128 bits.
fn parse(text: &str) -> Option<(i128, Format)> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = fraction.trim_end_matches('0');
    if (whole.is_empty() && fraction.is_empty() && !number.contains('0')) || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    let (amount, format) = match BINARY.iter().position(|known| *known == suffix) {
        Some(at) => {
            let factor = 1024_i128.checked_pow(u32::try_from(at).ok()? + 1)?;
            (scale(digits.checked_mul(factor)?, 9 - places)?, Format::Binary)
        }
        None => match DECIMAL.iter().find(|(known, _)| *known == suffix) {
            Some((_, exponent)) => (scale(digits, 9 + exponent - places)?, Format::Decimal),
            None => {
                let exponent: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
                (scale(digits, exponent.checked_add(9 - places)?)?, Format::Exponent)
            }
        },
    };
    Some((if negative { -amount } else { amount }, format))
}

fn scale(digits: i128, exponent: i32) -> Option<i128> {
    let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
    if exponent >= 0 { digits.checked_mul(factor) } else { Some(digits / factor + i128::from(digits % factor != 0)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_have_one_form() {
        let table = [
            (json!("1000m"), json!("1")),
            (json!("1024Mi"), json!("1Gi")),
            (json!("0.5"), json!("500m")),
            (json!("1.5Gi"), json!("1536Mi")),
            (json!("1000k"), json!("1M")),
            (json!("1e3"), json!("1e3")),
            (json!("0Mi"), json!("0")),
            (json!("512Ki"), json!("512Ki")),
            (json!("0.1Gi"), json!("107374182400m")),
            (json!(2), json!("2")),
            (json!(0.25), json!("250m")),
            (json!("-1500m"), json!("-1500m")),
            (json!("what"), json!("what")),
            (json!("1x"), json!("1x")),
            (json!(""), json!("")),
        ];
        for (mut value, expected) in table {
            let text = value.to_string();

            canonicalize(&mut value);

            assert_eq!(value, expected, "{text}");
        }
        assert!(is_same(&json!("1"), &json!("1000m")) && !is_same(&json!("x"), &json!("x")));
    }
}
