use std::time::Duration;

use serde_json::{Value, json};

use super::{
    items::{Form, ITEMS, Item, ObjectPath, VALUE, Want},
    life::Life,
};

const STUCK: &str = "example.org/stuck";

impl Life {
    pub(super) async fn delete_live(&mut self) {
        let item = self.any_item();
        self.note(format!("a user deletes {item:?}"));
        match (item.core_path(), self.random.bool()) {
            (Some(path), true) => drop(self.world.ask("DELETE", &path, None).await),
            (Some(_), false) | (None, true | false) => {
                let (resource, namespace, name) = item.places()[item.places().len() - 1];
                drop(self.world.sim.remove(resource, namespace, name));
            }
        }
    }

    pub(super) fn edit_live(&mut self) {
        let item = self.any_item();
        let (resource, namespace, name) = item.places()[self.random.usize(0..item.places().len())];
        let how = self.random.u8(0..3);
        self.note(format!("a user edits {resource} {name}, kind {how}"));
        self.world.sim.edit(resource, namespace, name, |live| match (how, item) {
            (0, _) => live["metadata"]["annotations"][VALUE] = json!("edited"),
            (1, Item::Deployment) => live["spec"]["replicas"] = json!(3),
            (1, _) => live["metadata"]["labels"] = json!({}),
            (_, Item::ConfigMap(_)) => live["data"] = json!({ "k": "edited", "more": "x" }),
            (_, _) => live["metadata"]["labels"]["resources.gardener.cloud/managed-by"] = json!("somebody"),
        });
    }

    /// A user deletes an object and creates it again with its content, as `kubectl replace --force` does.
    pub(super) fn replace_live(&mut self) {
        // The deletion of others would also delete their contents.
        let is_whole = |place: &ObjectPath| !place.1.is_empty() || place.0.starts_with("clusterroles");
        let places = ITEMS.into_iter().flat_map(|item| item.places()).filter(|place| is_whole(place));
        let Some(((resource, namespace, name), mut object)) = self.any_live(places) else { return };
        let is_edited = self.random.bool();
        self.note(format!("a user replaces {resource} {name}, with changes: {is_edited}"));
        let metadata = object["metadata"].as_object_mut().expect("metadata");
        for field in ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "finalizers"] {
            metadata.remove(field);
        }
        if is_edited {
            object["metadata"]["annotations"][VALUE] = json!("replaced");
        }
        self.world.sim.remove(resource, namespace, name);
        self.world.sim.put(object).expect("it was valid before");
    }

    /// A finalizer delays the deletion of an object; once it is removed, a user at once recreates the object.
    pub(super) async fn create_anew(&mut self) {
        let items: Vec<_> = ITEMS.into_iter().filter(|item| item.core_path().is_some()).collect();
        let places = items.iter().map(|item| &item.places()[item.places().len() - 1]);
        let Some(((resource, namespace, name), _)) = self.any_live(places) else { return };
        let Some(item) = Item::at(resource, "", namespace, name) else { return };
        self.free_stuck().await;
        let path = item.core_path().expect("only such items were asked for");
        let held = json!({ "metadata": { "finalizers": [STUCK] } });
        let is_held = self.world.ask("PATCH", &path, Some(held)).await.is_ok();
        let is_going = is_held && self.world.ask("DELETE", &path, None).await.is_ok();
        self.note(format!("{item:?} is held in deletion: {is_going}"));
        self.stuck.insert(item);
        let pause = [0, 10, 700, 5_000][self.random.usize(0..4)];
        tokio::time::sleep(Duration::from_millis(pause)).await;
        self.free_stuck().await;
        let want = Want { value: "user".into(), form: Form::Plain };
        let is_gone = self.world.sim.object(resource, namespace, name).is_none();
        let has_place = self.world.sim.object("namespaces", "", namespace).is_some();
        if let Some(manifest) = item.manifests(&want).pop().filter(|_| is_gone && has_place) {
            self.note(format!("a user creates {item:?} again"));
            self.watchman.keeps([item]);
            self.world.sim.put(manifest).expect("it is valid");
        }
    }

    fn any_live<'a>(&mut self, places: impl Iterator<Item = &'a ObjectPath>) -> Option<(ObjectPath, Value)> {
        let sim = &self.world.sim;
        let live = places.filter_map(|place| Some((*place, sim.object(place.0, place.1, place.2)?)));
        let mut live: Vec<_> = live.filter(|(_, live)| live["metadata"]["deletionTimestamp"].is_null()).collect();
        let index = if live.is_empty() { return None } else { self.random.usize(0..live.len()) };
        Some(live.swap_remove(index))
    }

    pub(super) async fn hold_live(&mut self) {
        if !self.stuck.is_empty() {
            return self.free_stuck().await;
        }
        let item = self.any_item();
        let Some(path) = item.core_path() else { return };
        self.note(format!("{item:?} is held by a finalizer"));
        self.stuck.insert(item);
        drop(self.world.ask("PATCH", &path, Some(json!({ "metadata": { "finalizers": [STUCK] } }))).await);
    }

    pub(super) async fn free_stuck(&mut self) {
        for item in std::mem::take(&mut self.stuck) {
            self.note(format!("{item:?} is not held any more"));
            let path = item.core_path().expect("only such items are held");
            drop(self.world.ask("PATCH", &path, Some(json!({ "metadata": { "finalizers": null } }))).await);
        }
    }
}
