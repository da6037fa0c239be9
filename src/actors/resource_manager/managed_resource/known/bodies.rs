//! Bodies of last answers: they save the GET before a PUT. A body is only used while a fresh cache shows exactly the
//! body's version. The memory is bounded. Objects whose body does not fit are read.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use cluster::object::{self, ObjectKey};
use kit::json;
use serde_json::Value;

/// Bytes of all bodies together (architecture §8): enough for some thousand objects that change soon after creation.
const BYTES: usize = 1 << 20;

const BESIDES: usize = 128;

/// The bodies, as JSON: trees would take five times as much memory.
#[derive(Default)]
pub(super) struct Bodies {
    inner: RefCell<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Never iterated.
    bodies: HashMap<Rc<ObjectKey>, Body>,
    /// Keys by age, oldest first.
    ages: BTreeMap<u64, Rc<ObjectKey>>,
    bytes: usize,
    next_age: u64,
}

struct Body {
    json: Box<[u8]>,
    age: u64,
}

impl Bodies {
    /// Keeps the answer to a write. It has no `managedFields`: a PUT without them leaves them as they are.
    pub(super) fn keep(&self, key: Rc<ObjectKey>, object: &Value) {
        let Ok(json) = serde_json::to_vec(object) else { return };
        let mut inner = self.inner.borrow_mut();
        inner.remove(&key);
        if json.len() > BYTES / 8 {
            return;
        }
        let body = Body { json: json.into(), age: inner.next_age };
        inner.next_age += 1;
        inner.bytes += body.size();
        inner.ages.insert(body.age, key.clone());
        inner.bodies.insert(key, body);
        while inner.bytes > BYTES
            && let Some((_, oldest)) = inner.ages.pop_first()
        {
            inner.remove(&oldest);
        }
    }

    pub(super) fn take(&self, key: &ObjectKey, version: &str) -> Option<Value> {
        let body = self.inner.borrow_mut().remove(key)?;
        json::from_slice(&body.json).ok().filter(|object| object::resource_version(object) == version)
    }
}

impl Inner {
    fn remove(&mut self, key: &ObjectKey) -> Option<Body> {
        let body = self.bodies.remove(key)?;
        self.ages.remove(&body.age);
        self.bytes -= body.size();
        Some(body)
    }
}

impl Body {
    fn size(&self) -> usize {
        BESIDES + self.json.len()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(name: &str) -> Rc<ObjectKey> {
        Rc::new(ObjectKey { kind: "ConfigMap".into(), name: name.into(), ..ObjectKey::default() })
    }

    fn object(version: &str, text: &str) -> Value {
        json!({ "metadata": { "resourceVersion": version }, "data": { "k": text } })
    }

    #[test]
    fn body_is_returned_once_and_for_its_own_version_only() {
        let bodies = Bodies::default();
        bodies.keep(key("a"), &object("7", "x"));
        bodies.keep(key("b"), &object("8", "y"));

        assert_eq!(bodies.take(&key("a"), "6"), None);
        assert_eq!(bodies.take(&key("b"), "8").unwrap()["data"]["k"], "y");
        assert_eq!(bodies.take(&key("b"), "8"), None);
    }

    #[test]
    fn body_memory_is_bounded() {
        let bodies = Bodies::default();
        let text = "x".repeat(10_000);
        for round in 0..2 {
            for index in 0..1000 {
                bodies.keep(key(&index.to_string()), &object(&round.to_string(), &text));
            }
        }

        let inner = bodies.inner.borrow();
        assert!(inner.bytes <= BYTES && inner.ages.len() == inner.bodies.len());
        assert!(inner.bodies.contains_key(&key("999")));
    }

    fn of_size(size: usize) -> Value {
        let empty = object("1", "").to_string().len();
        object("1", &"x".repeat(size - BESIDES - empty))
    }

    fn kept(bodies: &Bodies) -> Vec<usize> {
        let inner = bodies.inner.borrow();
        (0..20).filter(|index| inner.bodies.contains_key(&key(&index.to_string()))).collect()
    }

    #[test]
    fn body_memory_drops_the_oldest_first() {
        let bodies = Bodies::default();
        let body = of_size(BYTES / 16);
        let keep = |index: usize| bodies.keep(key(&index.to_string()), &body);
        (0..16).for_each(keep);
        assert_eq!(kept(&bodies), (0..16).collect::<Vec<_>>());

        keep(16);
        keep(1); // young again
        keep(17);

        assert_eq!(kept(&bodies), [&[1][..], &(3..18).collect::<Vec<_>>()].concat());
    }

    #[test]
    fn body_above_an_eighth_of_the_memory_is_not_kept_nor_is_its_predecessor() {
        let bodies = Bodies::default();
        for (size, expected) in [(BYTES / 8 + BESIDES, &[0][..]), (BYTES / 8 + BESIDES + 1, &[])] {
            bodies.keep(key("0"), &of_size(size));

            assert_eq!(kept(&bodies), expected, "{size}");
        }
        assert_eq!(bodies.inner.borrow().bytes, 0);
    }

    #[test]
    fn body_kept_again_and_again_displaces_no_other() {
        for large in [2, 8] {
            let bodies = Bodies::default();
            let (body, small) = (of_size(BYTES / 8 - BESIDES), of_size(8 * BESIDES)); // 8 and one fill the room
            (0..large).for_each(|index| bodies.keep(key(&index.to_string()), &body));

            (0..100).for_each(|_| bodies.keep(key(&large.to_string()), &small));

            assert_eq!(kept(&bodies), (0..=large).collect::<Vec<_>>());
            assert_eq!(bodies.inner.borrow().ages.len(), large + 1);
        }
    }
}
