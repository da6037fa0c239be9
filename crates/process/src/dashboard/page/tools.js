// Parts that several views have: search field, filters with counts, hints and commands.

import { make, makeButton, makeCommand, setAttribute, setText, showList } from "./dom.js";

/** A search field. `input` gets each text; `leave` is called when people go on to the list. */
export function makeSearch(label, placeholder, { input, leave }) {
  const field = make("input");
  Object.assign(field, { type: "search", placeholder, autocomplete: "off", spellcheck: false });
  setAttribute(field, "aria-label", label);
  field.addEventListener("input", () => input(field.value));
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== "ArrowDown") return;
    event.preventDefault();
    leave?.();
  });
  const key = make("kbd", "", "/");
  setAttribute(key, "aria-hidden", "true");
  return { element: make("label", "search", field, key), input: field };
}

/** A filter with a count. */
export function makeChip(dotClass, label, onClick) {
  const count = make("span", "count", "0");
  const element = makeButton("chip", onClick, ...(dotClass ? [make("span", `dot ${dotClass}`)] : []), label, count);
  return { element, count };
}

/** Sentences as a list. */
export function showHints(list, hints) {
  list.hidden = hints.length === 0;
  showList(list, hints, () => ({ element: make("li") }), ({ element }, hint) => setText(element, hint));
}

/** Commands that can be copied. */
export function showCommands(list, commands) {
  showList(list, commands, makeCommand, ({ code, note }, [command, meaning]) => {
    setText(code, command);
    setText(note, meaning);
  });
}
