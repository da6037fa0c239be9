// What the server told: all actors, the process, the figures. Changes are applied to it as they come.

/** Fields that the feed leaves out if they are empty. */
const EMPTY = {
  current: null, mailbox: 0, mailboxHigh: 0, restarts: 0, finished: 0, lastError: null, problem: null, nextTimer: null, line: "",
  heard: null, changed: null, object: null,
};

const NO_FIGURES = { views: [], reconcilers: [], clusters: [], webhooks: [], certificate: null };

/** A row with all fields. */
export const wholeRow = (row) => ({ ...EMPTY, ...row });

export class Feed {
  /** Rows by path. */
  actors = new Map();
  /** Paths of actors that watch a kind. They are few, and read each second. */
  watches = new Set();
  process = null;
  figures = NO_FIGURES;
  config = "";
  version = 0;
  /** Server clock minus browser clock, in milliseconds. */
  skew = 0;

  get isKnown() {
    return this.process !== null;
  }

  /** Takes an event. Returns what it changed, or null if the event is unknown: `all` rows, or `changed` rows and paths that are `gone`. */
  take(event, document, clock) {
    const take = { snapshot: () => this.#snapshot(document), changes: () => this.#changes(document), figures: () => this.#figures(document) }[event];
    if (!take) return null;
    if (document.now) this.#setSkew(Date.parse(document.now) - clock);
    return take();
  }

  /** Events may be some seconds old when they come. The least delayed one tells the clock. */
  #setSkew(skew) {
    const isAnotherClock = Math.abs(skew - this.skew) > 60_000;
    this.skew = this.isKnown && !isAnotherClock ? Math.max(this.skew, skew) : skew;
  }

  #snapshot({ version, process, actors, figures, config }) {
    this.actors.clear();
    this.watches.clear();
    for (const row of actors ?? []) this.#put(row);
    this.process = process;
    this.version = version;
    this.figures = { ...NO_FIGURES, ...figures };
    this.config = config ?? "";
    return { all: true, figures: true, changed: [], gone: [], structure: true };
  }

  #changes({ version, process, actors = [], gone = [] }) {
    let structure = false;
    for (const path of gone) {
      structure = this.actors.delete(path) || structure;
      this.watches.delete(path);
    }
    const changed = actors.map((row) => {
      structure ||= !this.actors.has(row.path);
      return this.#put(row);
    });
    if (process) this.process = process;
    this.version = version;
    return { all: false, figures: false, changed, gone, structure };
  }

  #figures({ figures }) {
    this.figures = { ...NO_FIGURES, ...figures };
    return { all: false, figures: true, changed: [], gone: [], structure: false };
  }

  #put(row) {
    const whole = wholeRow(row);
    this.actors.set(row.path, whole);
    if (row.role === "watch") this.watches.add(row.path);
    return whole;
  }

  /** Rows of the actors that watch a kind. */
  watchRows() {
    return [...this.watches].map((path) => this.actors.get(path));
  }
}

/** Splits a stream of text into server-sent events. Comments and unknown fields are skipped. */
export class EventParser {
  #rest = "";
  #event = "";
  #data = [];

  /** Takes a piece of the stream, and calls `emit(event, data)` for each event that it completes. */
  push(piece, emit) {
    const lines = piece.split("\n");
    lines[0] = this.#rest + lines[0];
    this.#rest = lines.pop();
    for (const line of lines) this.#line(line.endsWith("\r") ? line.slice(0, -1) : line, emit);
  }

  #line(line, emit) {
    if (line === "") {
      if (this.#data.length > 0) emit(this.#event || "message", this.#data.join("\n"));
      this.#event = "";
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
  }
}
