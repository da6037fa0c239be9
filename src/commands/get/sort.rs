//! The order of `--sort-by`.

use cluster::object::NamespacedName;
use serde_json::Value;

use super::row::Row;
use crate::{
    cli::{SortBy, TableColumn},
    jsonpath::{self, TooMuch},
};

/// Where a ManagedResource is in the order: by its value, then by namespace and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    value: SortValue,
    key: NamespacedName,
}

/// Numbers come before texts, and what lacks the value comes last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SortValue {
    Number(OrderedNumber),
    Text(String),
    Absent,
}

#[derive(Debug, Clone, Copy)]
struct OrderedNumber(f64);

impl Rank {
    /// Fails if the JSONPath takes too long.
    pub(super) fn of(by: &SortBy, row: &Row, object: &Value) -> Result<Self, TooMuch> {
        let value = match by {
            SortBy::Column(column) => of_column(*column, row),
            SortBy::Path(path) => path.of(object)?.first().map_or(SortValue::Absent, |value| of_value(value)),
        };
        Ok(Self { value, key: row.key.clone() })
    }
}

fn of_column(column: TableColumn, row: &Row) -> SortValue {
    let [applied, healthy, progressing] = &row.conditions;
    let text = |text: &str| SortValue::Text(text.to_owned());
    match column {
        TableColumn::Namespace => text(&row.key.namespace),
        TableColumn::Name => text(&row.key.name),
        TableColumn::Class => text(&row.class),
        TableColumn::Applied => text(&applied.text),
        TableColumn::Healthy => text(&healthy.text),
        TableColumn::Progressing => text(&progressing.text),
        #[expect(clippy::cast_precision_loss, reason = "no status has so many objects")]
        TableColumn::Objects => SortValue::Number(OrderedNumber(row.objects as f64)),
        // The youngest is created last.
        TableColumn::Age => row
            .created
            .map_or(SortValue::Absent, |it| SortValue::Number(OrderedNumber(-it.as_duration().as_secs_f64()))),
        TableColumn::Problem => {
            Some(row.remark()).filter(|it| !it.is_empty()).map_or(SortValue::Absent, SortValue::Text)
        }
    }
}

fn of_value(value: &Value) -> SortValue {
    match value {
        Value::Null => SortValue::Absent,
        Value::Number(number) => {
            number.as_f64().map_or(SortValue::Absent, |number| SortValue::Number(OrderedNumber(number)))
        }
        other => SortValue::Text(jsonpath::text(other)),
    }
}

impl PartialEq for OrderedNumber {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedNumber {}

impl PartialOrd for OrderedNumber {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedNumber {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(by: &str, objects: &[Value]) -> String {
        let by: SortBy = by.parse().unwrap();
        let rank = |object: &Value| Rank::of(&by, &Row::of(object), object).unwrap();
        let mut ranks: Vec<_> = objects.iter().map(rank).collect();
        ranks.sort();
        ranks.into_iter().map(|rank| rank.key.name).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn sort_order_is_by_number_then_text_and_absent_values_are_last() {
        let object = |name: &str, created: &str, n: Value, objects: usize| {
            let resources = vec![json!({}); objects];
            json!({
                "metadata": {"namespace": "ns", "name": name, "creationTimestamp": created},
                "spec": {"secretRefs": [], "n": n}, "status": {"resources": resources},
            })
        };
        let objects = [
            object("a", "2026-01-01T00:00:00Z", json!("text"), 10),
            object("b", "2026-01-03T00:00:00Z", Value::Null, 9),
            object("c", "2026-01-02T00:00:00Z", json!(10), 9),
            object("d", "", json!(9.5), 0),
        ];

        assert_eq!(order(".spec.n", &objects), "d c a b");
        assert_eq!(order("objects", &objects), "d b c a");
        assert_eq!(order("AGE", &objects), "b c a d");
        assert_eq!(order("name", &objects), "a b c d");
        assert_eq!(order(".nowhere", &objects), "a b c d");
    }
}
