// What to do about a bundle that is not well: sentences by reason, and commands.

import { shellWord } from "./text.js";

/** By reason of a condition, or by the end of a reason after the kind of an object. The first that fits. */
const BY_REASON = [
  [/^DecodingFailed$/, "Correct the document: the message names Secret, data key and index. All other documents are applied, and nothing is deleted meanwhile."],
  [/^CannotReadSecret$/, "Create the Secret, or grant the right to read it. A reconcile follows at once. Nothing is touched meanwhile."],
  [/^ReleaseOfOrphanedResourcesFailed$/, "The message says why the object cannot be released. The program tries again."],
  [/^StatusTooLarge$/, "The objects are applied, but their references do not fit into the status. Make smaller bundles, or smaller annotations."],
  [/^ManagedResourceIgnored$/, "Nothing is touched while the annotation resources.gardener.cloud/ignore is set. The command resume removes it."],
  [/^wait-for-state$/, "The annotation gardener.cloud/operation: wait-for-state stops all work. Whoever set it has to remove it."],
  [/^handed-over$/, "The class of the bundle changed: this program removes the objects, then the other class takes over."],
  [/^waits-for-class$/, "Another class has not finished with the bundle: its finalizer is still there. That program has to clean up first."],
  [/^ApplyProgressing$/, "A change is being applied. Wait. If this stays, look at the last reconciles."],
  [/^DeletionPending$/, "Objects are being deleted. An object with finalizers waits for their owners: repair the controller that removes them."],
  [/^HealthCheckError$/, "A check was impossible: the kind cannot be watched, or a field has the wrong type. Look at the watches of the target cluster."],
  [/^ChecksPending$/, "The objects are checked after they are applied. Wait. If this stays, look at ResourcesApplied."],
  [/^Quarantined$/, "The actor panicked several times. It runs every ten minutes, or when the bundle changes. Please report this defect."],
  [/Missing$/, "The object does not exist. It is created again at once. If this stays, ResourcesApplied says why that fails."],
  [/Unhealthy$/, "Look at the named object and its Pods in the target cluster. The bundle is applied; its object does not work."],
  [/Progressing$/, "The named object is being rolled out. Wait, or look at its Pods in the target cluster."],
];

/** By message, for objects that cannot be applied. */
const BY_MESSAGE = [
  [/field is immutable|is invalid/, "The object must be replaced: delete it, or put the annotation resources.gardener.cloud/delete-on-invalid-update: \"true\" into its manifest."],
  [/failed calling webhook/, "An admission webhook of the target does not answer. Repair it."],
  [/forbidden/, "The user of the target lacks a right, or a quota is used up."],
  [/complete list of server APIs|not ready/, "The API server, or an aggregated API, does not answer. Nothing is deleted meanwhile."],
  [/no matches for kind/, "The kind is not served: its CustomResourceDefinition is missing or not established. The next attempt follows as soon as it is served."],
];

const APPLY_FAILED = "The message names the object and quotes the API server. Attempts follow after growing pauses, up to the period.";

/** What to do about one reason. `message` may be cut, or "". */
export function hintOf(reason, message = "") {
  if (reason === "ApplyFailed") return BY_MESSAGE.find(([pattern]) => pattern.test(message))?.[1] ?? APPLY_FAILED;
  return BY_REASON.find(([pattern]) => pattern.test(reason))?.[1] ?? "";
}

/** Sentences for a bundle, without repetitions. `messages` are texts by reason. */
export function hintsFor(bundle, messages = new Map()) {
  const reasons = [...bundle.marks.map((mark) => (mark === "ignored" ? "ManagedResourceIgnored" : mark)), ...bundle.reasons];
  const hints = reasons.map((reason) => hintOf(reason, messages.get(reason) ?? bundle.problem)).filter((hint) => hint !== "");
  return [...new Set(hints)];
}

/** Commands for a bundle, with what each does. */
export function commandsFor({ namespace, name, marks }) {
  const program = "gardener-resource-manager";
  const [ns, one] = [shellWord(namespace), shellWord(name)];
  const commands = [[`${program} describe ${ns}/${one} --tree`, "reads each object in the target now"]];
  if (marks.includes("ignored")) commands.push([`${program} resume ${one} -n ${ns}`, "lets the program work on it again"]);
  else commands.push([`${program} reconcile ${one} -n ${ns} --wait`, "starts an attempt now"]);
  return commands;
}

/** The command that finds bundle, Secret and document of an object in the target. */
export function traceCommand({ kind, apiVersion, namespace, name }) {
  const slash = apiVersion.indexOf("/");
  const type = slash < 0 ? kind : `${kind}.${apiVersion.slice(0, slash)}`;
  return `gardener-resource-manager trace ${shellWord(`${type}/${name}`)}${namespace ? ` -n ${shellWord(namespace)}` : ""}`;
}
