// Small helpers for the page. Names and texts may hold anything: they reach the page through textContent alone.

/** An element with a class and children. Strings become text. */
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a picture. */
export function makeSvg(tag, attributes = {}) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export function makeButton(className, onClick, ...children) {
  const button = make("button", className, ...children);
  button.type = "button";
  button.addEventListener("click", onClick);
  return button;
}

/** A link to a place in the page. The label may change. */
export function makeLink(className, href, ...children) {
  const link = make("a", className, ...children);
  if (href) link.setAttribute("href", href);
  return link;
}

/** A part of the page with a heading. */
export function makePanel(className, title, ...children) {
  const heading = make("h2", "", title);
  const head = make("div", "panel-head", heading);
  const panel = make("section", `panel ${className}`, head, ...children);
  panel.setAttribute("aria-label", title);
  return { panel, head, heading };
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setAttribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

export function setTitle(element, text) {
  setAttribute(element, "title", text === "" ? null : text);
}

export function setClass(element, className) {
  if (element.className !== className) element.className = className;
}

/** What `showList` made, by host. */
const lists = new WeakMap();

/**
 * Shows a list with as few changes as possible: item i is filled into child i of `host`. `makeItem` returns an object with
 * `element`, `fill` gets that object and the item.
 */
export function showList(host, items, makeItem, fill) {
  const known = lists.get(host) ?? [];
  lists.set(host, known);
  while (known.length < items.length) {
    const item = makeItem();
    known.push(item);
    host.append(item.element);
  }
  items.forEach((item, index) => {
    known[index].element.hidden = false;
    fill(known[index], item, index);
  });
  for (const unused of known.slice(items.length)) unused.element.hidden = true;
}

/** A command with a button that copies it. */
export function makeCommand() {
  const code = make("code", "");
  const note = make("span", "command-note");
  const button = makeButton("copy", () => copy(code, button), "Copy");
  button.hidden = !navigator.clipboard;
  return { element: make("li", "command", code, button, note), code, note, button };
}

async function copy(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    setText(button, "Copied");
  } catch {
    getSelection().selectAllChildren(code);
    setText(button, "Selected");
  }
  setTimeout(() => setText(button, "Copy"), 1500);
}

/** Facts `[label, text, tone, title]` as a definition list. Those without text are left out. */
export function showFacts(list, facts) {
  const shown = facts.filter(([, text]) => text !== "" && text !== null && text !== undefined);
  showList(list, shown, () => {
    const [label, value] = [make("dt"), make("dd")];
    return { element: make("div", "", label, value), label, value };
  }, (row, [label, text, tone, title]) => {
    setText(row.label, label);
    setTitle(row.label, title ?? "");
    setText(row.value, text);
    setClass(row.value, tone ? `tone-${tone}` : "");
  });
}

/** Whether people have marked text, which a click must not take from them. */
export const isSelecting = () => !(getSelection()?.isCollapsed ?? true);
