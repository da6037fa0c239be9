// The stream of events, and questions about one actor.

import { EventParser } from "./feed.js";

/** In milliseconds. The server sends a comment after 15 s without an event; after this time the connection is lost. */
const SILENCE = 40_000;
/** In milliseconds, between attempts. */
const PAUSES = [500, 2000, 5000];

/** The status if too many pages are open. The text says so. */
const NO_PLACE = 503;

const pause = (time) => new Promise((resolve) => { setTimeout(resolve, time); });

/**
 * Reads server-sent events from `url` for ever. `event` gets name and data of each. `connection` gets `live`, or `lost` and why.
 * An `EventSource` would not tell of a connection that is silent.
 */
export async function connect(url, { event, connection }) {
  for (let attempt = 0; ; attempt += 1) {
    let why = "the server ended it";
    try {
      await readEvents(url, (name, data) => {
        attempt = 0;
        connection("live");
        event(name, data);
      });
    } catch (error) {
      why = error.message;
    }
    connection("lost", why);
    await pause(PAUSES[Math.min(attempt, PAUSES.length - 1)]);
  }
}

async function readEvents(url, emit) {
  const abort = new AbortController();
  let watchdog = 0;
  const heard = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(() => abort.abort(new Error("the server is silent")), SILENCE);
  };
  try {
    heard();
    const answer = await fetch(url, { signal: abort.signal, cache: "no-store", headers: { accept: "text/event-stream" } });
    if (!answer.ok) throw new Error(answer.status === NO_PLACE ? (await answer.text()).trim() : `the server answers ${answer.status}`);
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      heard();
      parser.push(value, emit);
    }
  } finally {
    clearTimeout(watchdog);
  }
}

/** In milliseconds, between two questions about the same actor. */
const QUESTION_INTERVAL = 1000;
/** In milliseconds, after an answer that is an error. */
const QUESTION_RETRY = 5000;
/** The status after too many questions of all pages of a network. */
const TOO_MANY = 429;
/** So many refusals in a row are shown. Fewer only delay the answer. */
const SHOWN_REFUSALS = 3;
/** Takes the place of a timer while an answer is under way. */
const ASKING = -1;

/**
 * Asks for the details of one actor at a time. `answer` gets path, and the document or an error. Errors are asked again.
 */
export class DetailsQuestion {
  #answer;
  #path = null;
  #asked = 0;
  #timer = 0;
  #abort = null;
  /** Whether the row changed while the answer was under way. */
  #outdated = false;
  /** Refusals since the last answer. */
  #refusals = 0;

  constructor(answer) {
    this.#answer = answer;
  }

  /** Asks for the actor at `path` from now on; null ends it. */
  open(path) {
    if (path === this.#path) return;
    this.#abort?.abort();
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#outdated = false;
    this.#refusals = 0;
    this.#path = path;
    if (path !== null) this.#ask();
  }

  /** The row has changed: asks again, at most once a second. */
  again(wait = QUESTION_INTERVAL) {
    if (this.#timer === ASKING) this.#outdated = true;
    if (this.#path === null || this.#timer !== 0) return;
    const due = Math.max(0, this.#asked + wait - performance.now());
    this.#timer = setTimeout(() => this.#ask(), due);
  }

  async #ask() {
    const path = this.#path;
    const abort = new AbortController();
    this.#abort = abort;
    this.#asked = performance.now();
    this.#timer = ASKING;
    this.#outdated = false;
    let answer;
    try {
      const response = await fetch(`dashboard/details?path=${encodeURIComponent(path)}`, { signal: abort.signal, cache: "no-store" });
      const document = await response.json();
      answer = response.ok ? { document } : { error: document.error ?? `the server answers ${response.status}`, status: response.status };
    } catch (error) {
      answer = { error: error.message, status: 0 };
    }
    if (abort.signal.aborted || path !== this.#path) return;
    this.#timer = 0;
    this.#refusals = answer.status === TOO_MANY ? this.#refusals + 1 : 0;
    if (this.#refusals === 0 || this.#refusals >= SHOWN_REFUSALS) this.#answer(path, answer);
    // At different times, so that pages do not refuse each other for ever.
    if (this.#refusals > 0) this.again(QUESTION_INTERVAL * (1 + Math.random()));
    else if (answer.error) this.again(QUESTION_RETRY);
    else if (this.#outdated) this.again();
  }
}
