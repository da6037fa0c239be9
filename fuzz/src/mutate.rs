//! Mutates streams of objects, and reviews, as objects. Nearly every change of single bytes is not JSON or YAML any
//! more and tests only the parser. So these mutations move or remove parts of objects, or insert meaningful values.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Value, json};

use crate::{
    checks,
    places::{count, nth},
    words::{MERGED, VALIDATED, Words},
};

/// Mutates the first `size` bytes of `data`, which has room for `max_size`; returns the new size.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut random = Random::new(seed);
    let objects = checks::objects(&data[..size]).filter(|objects| !objects.is_empty());
    let Some(mut objects) = objects.filter(|_| random.below(16) > 0) else {
        return fuzzer_mutate(data, size, max_size);
    };
    for _ in 0..=random.below(3) {
        change(&mut objects, &MERGED, &mut random);
    }
    let text = objects.iter().map(|object| format!("{object}\n")).collect::<String>();
    if text.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

/// Mutates a review (a header line and a body); most often the body, as an object.
pub fn mutate_review(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let start = data[..size].iter().position(|byte| *byte == b'\n').map_or(size, |end| end + 1);
    mutate_body(data, start, size, max_size, &MERGED, seed)
}

pub fn mutate_validated(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    mutate_body(data, 0, size, max_size, &VALIDATED, seed)
}

fn mutate_body(data: &mut [u8], start: usize, size: usize, max_size: usize, words: &Words, seed: u32) -> usize {
    let mut random = Random::new(seed);
    let body = serde_json::from_slice::<Value>(&data[start..size]).ok();
    let Some(body) = body.filter(|_| random.below(8) > 0) else {
        return fuzzer_mutate(data, size, max_size);
    };
    let mut bodies = vec![body];
    for _ in 0..=random.below(3) {
        change(&mut bodies, words, &mut random);
    }
    let text = bodies[0].to_string();
    if start + text.len() > max_size {
        return fuzzer_mutate(data, size, max_size);
    }
    data[start..start + text.len()].copy_from_slice(text.as_bytes());
    start + text.len()
}

fn change(objects: &mut Vec<Value>, words: &Words, random: &mut Random) {
    let new = match random.below(3) {
        0 => value(words, random),
        _ => copy(objects, random),
    };
    let object = random.below(objects.len());
    match random.below(24) {
        0 if objects.len() > 1 => drop(objects.remove(object)),
        1 => objects.push(objects[object].clone()),
        2 => objects.swap(0, object),
        3 => copy_place(objects, object, random),
        _ => {
            let place = random.below(count(&objects[object]));
            if let Some(place) = nth(&mut objects[object], &mut { place }) {
                change_at(place, new, words, random);
            }
        }
    }
}

fn change_at(place: &mut Value, new: Value, Words { keys, .. }: &Words, random: &mut Random) {
    match (place, random.below(4)) {
        (Value::Object(fields), 0) if !fields.is_empty() => {
            let key = fields.keys().nth(random.below(fields.len())).cloned();
            key.map(|key| fields.remove(&key));
        }
        (Value::Object(fields), 1 | 2) => drop(fields.insert(keys[random.below(keys.len())].to_owned(), new)),
        (Value::Array(items), 0) if !items.is_empty() => drop(items.remove(random.below(items.len()))),
        (Value::Array(items), 1) => items.push(new),
        (Value::Array(items), 2) if !items.is_empty() => {
            let (a, b) = (random.below(items.len()), random.below(items.len()));
            items.swap(a, b);
        }
        (place, _) => *place = new,
    }
}

fn copy_place(objects: &mut [Value], from: usize, random: &mut Random) {
    let to = random.below(objects.len());
    let fields: Vec<String> = objects[from].as_object().into_iter().flatten().map(|(key, _)| key.clone()).collect();
    if fields.is_empty() {
        return;
    }
    let field = &fields[random.below(fields.len())];
    let value = objects[from][field].clone();
    if let Some(fields) = objects[to].as_object_mut() {
        fields.insert(field.clone(), value);
    }
}

fn value(Words { texts, .. }: &Words, random: &mut Random) -> Value {
    match random.below(10) {
        0 => Value::Null,
        1 => json!({}),
        2 => json!([]),
        3 => json!(random.below(2) == 0),
        4 => json!(random.below(3)),
        5 => json!(30_000 + random.below(3)),
        6 => json!([i64::MIN, i64::MAX, 1 << 31, -1][random.below(4)]),
        7 => json!([0.5, 1e300, u64::MAX as f64][random.below(3)]),
        _ => json!(texts[random.below(texts.len())]),
    }
}

fn copy(objects: &mut [Value], random: &mut Random) -> Value {
    let object = random.below(objects.len());
    let mut place = random.below(count(&objects[object]));
    nth(&mut objects[object], &mut place).cloned().unwrap_or_default()
}

struct Random(u64);

impl Random {
    fn new(seed: u32) -> Self {
        Self(u64::from(seed) << 1 | 1)
    }

    fn below(&mut self, bound: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % bound.max(1)
    }
}
