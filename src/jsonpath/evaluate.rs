use serde_json::Value;

use super::{Comparison, Filter, Node, Path, Segment, Template, TooMuch};

/// Values that one evaluation may visit. A list of all ManagedResources of a large cluster has fewer.
const STEPS: usize = 50_000_000;
const LONGEST_OUTPUT: usize = 256 << 20;

/// How much work is left.
pub(super) struct Budget(pub(super) usize);

impl Template {
    /// Prints a value. Fails if that takes too long or prints too much.
    pub fn print(&self, value: &Value) -> Result<String, TooMuch> {
        let mut text = String::new();
        nodes(&self.0, value, &mut text, &mut Budget(STEPS))?;
        Ok(text)
    }
}

impl Path {
    /// Returns the values that it leads to. Fails if that takes too long.
    pub fn of<'a>(&self, value: &'a Value) -> Result<Vec<&'a Value>, TooMuch> {
        self.within(value, &mut Budget(STEPS))
    }

    pub(super) fn within<'a>(&self, value: &'a Value, budget: &mut Budget) -> Result<Vec<&'a Value>, TooMuch> {
        let mut found = vec![value];
        for segment in &self.0 {
            let mut next = Vec::new();
            for value in found {
                segment.push(value, &mut next, budget)?;
            }
            found = next;
        }
        Ok(found)
    }
}

/// Returns a value as templates print it.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn nodes(nodes: &[Node], value: &Value, out: &mut String, budget: &mut Budget) -> Result<(), TooMuch> {
    for node in nodes {
        budget.spend(1)?;
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Path(path) => {
                for (index, found) in path.within(value, budget)?.into_iter().enumerate() {
                    if index > 0 {
                        out.push(' ');
                    }
                    out.push_str(&text(found));
                    within_limit(out)?;
                }
            }
            Node::Range(path, inner) => {
                for found in path.within(value, budget)? {
                    self::nodes(inner, found, out, budget)?;
                }
            }
        }
        within_limit(out)?;
    }
    Ok(())
}

fn within_limit(out: &str) -> Result<(), TooMuch> {
    if out.len() > LONGEST_OUTPUT { Err(TooMuch) } else { Ok(()) }
}

impl Budget {
    fn spend(&mut self, steps: usize) -> Result<(), TooMuch> {
        self.0 = self.0.checked_sub(steps).ok_or(TooMuch)?;
        Ok(())
    }
}

impl Segment {
    fn push<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>, budget: &mut Budget) -> Result<(), TooMuch> {
        budget.spend(1)?;
        match (self, value) {
            (Self::Field(name), Value::Object(fields)) => found.extend(fields.get(name)),
            (Self::Item(number), Value::Array(items)) => found.extend(item(items, *number)),
            (Self::All, Value::Array(items)) => {
                budget.spend(items.len())?;
                found.extend(items);
            }
            (Self::All, Value::Object(fields)) => {
                budget.spend(fields.len())?;
                found.extend(fields.values());
            }
            (Self::Filter(filter), Value::Array(items)) => {
                for item in items {
                    if filter.holds(item, budget)? {
                        found.push(item);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl Filter {
    fn holds(&self, item: &Value, budget: &mut Budget) -> Result<bool, TooMuch> {
        let found = self.path.within(item, budget)?;
        Ok(match &self.comparison {
            None => found.iter().any(|value| !value.is_null()),
            Some(Comparison { equal: true, with }) => found.contains(&with),
            Some(Comparison { equal: false, with }) => !found.contains(&with),
        })
    }
}

fn item(items: &[Value], number: i64) -> Option<&Value> {
    let index = usize::try_from(number.unsigned_abs()).ok()?;
    if number < 0 { items.get(items.len().checked_sub(index)?) } else { items.get(index) }
}
