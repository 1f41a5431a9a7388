// The console's script: the key of the session, live parts, the slider, the order of a queue, output as it comes.
// Pages are made by the server; nothing here makes markup from text.
"use strict";

const KEY = "codespace-operator-key";
const REFRESH_MS = 400;
const RETRY_MS = 2000;
const OUTPUT_CHARACTERS_MAX = 300000;
const byId = (id) => document.getElementById(id);
let isOver = false; // the session, as far as the page knows
const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// The key lies in the storage of this scheme, host and port, where no page of another port can read it.
function keepKey() {
  const { key, next } = document.body.dataset;
  if (key) {
    localStorage.setItem(KEY, key);
    location.replace(next);
  }
}

function showKey(form) {
  const field = form.querySelector("input[name=key]");
  if (field) field.value = localStorage.getItem(KEY) || "";
}

document.addEventListener("submit", (event) => {
  showKey(event.target);
  if (event.target.getAttribute("action") === "/console/logout") localStorage.removeItem(KEY);
  const busy = event.submitter && event.submitter.dataset.busy;
  if (busy) event.submitter.textContent = busy;
});

// Parts of a page that change while it is open are fetched again with the page, and put in their places.
// False: the server can't be reached, or can't say now.
async function refresh(address, ids) {
  const answer = await fetch(address, { credentials: "same-origin", cache: "no-store" }).catch(() => null);
  if (answer && answer.redirected) leave();
  if (!answer || !answer.ok) return false;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const id of ids) {
    const old = byId(id), part = fresh.getElementById(id);
    if (old && part && !isInUse(old)) old.replaceChildren(...part.childNodes);
  }
  return true;
}

// The session is over. The login leads back here; what somebody has written stays in sight, and the page says why it rests.
function leave() {
  isOver = true;
  if (isChanged(document)) tell("logged out", false);
  else location.reload();
}

function tell(text, isLive) {
  const status = byId("live");
  status.hidden = false;
  status.textContent = text;
  status.classList.toggle("on", isLive);
}

function isInUse(part) {
  return part.contains(document.activeElement) || part.querySelector("details[open]") !== null
    || part.querySelector(".dragged") !== null || isChanged(part);
}

function isChanged(part) {
  const fields = [...part.querySelectorAll("textarea, input:not([type=hidden], [type=range])")];
  return fields.some((field) => field.value !== field.defaultValue);
}

// Live: the server tells of every event; a hidden page lets go of its connection, since browsers allow few.
class Live {
  constructor(parts) {
    this.parts = parts;
    this.stale = new Set();
    this.last = document.body.dataset.position; // what the page shows already
    document.addEventListener("visibilitychange", () => (document.hidden ? this.close() : this.open()));
    if (!document.hidden) this.open();
  }

  open() {
    if (this.source || isOver) return;
    this.source = new EventSource("/operator/timeline/events?after=" + this.last);
    this.source.onopen = () => tell("live", true);
    this.source.onerror = () => {
      tell("connecting", false);
      if (this.source.readyState === EventSource.CLOSED) this.reopen();
    };
    this.source.onmessage = (message) => {
      this.last = message.lastEventId;
      this.note(JSON.parse(message.data).topic);
    };
  }

  close() {
    if (this.source) this.source.close();
    this.source = null;
  }

  // The browser tries again by itself where nobody answers, but gives up where it is refused.
  async reopen() {
    this.close();
    await refresh(location.href, []);
    await later(RETRY_MS);
    if (!document.hidden) this.open();
  }

  note(topic) {
    for (const part of this.parts) {
      const wanted = part.dataset.live.split(" ");
      if (wanted.some((start) => start === "*" || topic.startsWith(start))) this.stale.add(part.id);
    }
    if (this.stale.size && !this.waiting) this.waiting = setTimeout(() => this.refresh(), REFRESH_MS);
  }

  async refresh() {
    const ids = [...this.stale];
    this.stale.clear();
    const isFresh = await refresh(location.href, ids);
    this.waiting = null;
    for (const id of ids) if (byId(id) && (!isFresh || isInUse(byId(id)))) this.stale.add(id);
    if (this.stale.size) this.waiting = setTimeout(() => this.refresh(), 4 * REFRESH_MS);
  }
}

// The slider: the state as of the position that it stands at.
function slide(form) {
  const slider = form.querySelector("input[type=range]"), shown = form.querySelector("output");
  let timer = null;
  form.querySelector("button").hidden = true;
  slider.addEventListener("input", () => {
    shown.textContent = slider.value + " of " + slider.max;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const address = new URL(location.href);
      address.searchParams.set("position", slider.value);
      history.replaceState(null, "", address);
      await refresh(address, [form.dataset.slider]);
    }, 150);
  });
}

// The order of a queue: by dragging, or with Alt and the arrow keys; the buttons work without all this.
function order(list) {
  if (list.dataset.isOrdered) return;
  list.dataset.isOrdered = "yes";
  let dragged = null;
  list.addEventListener("dragstart", (event) => {
    dragged = event.target.closest("li");
    dragged.classList.add("dragged");
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", dragged.id);
  });
  list.addEventListener("dragover", (event) => {
    const over = event.target.closest("li");
    if (!dragged) return;
    event.preventDefault();
    if (!over || over === dragged || over.parentNode !== list) return;
    const box = over.getBoundingClientRect();
    list.insertBefore(dragged, event.clientY < box.top + box.height / 2 ? over : over.nextSibling);
  });
  list.addEventListener("drop", (event) => event.preventDefault());
  list.addEventListener("dragend", () => {
    if (!dragged) return;
    dragged.classList.remove("dragged");
    send(list, dragged);
    dragged = null;
  });
  list.addEventListener("keydown", (event) => {
    const item = event.target.closest("li"), isUp = event.key === "ArrowUp";
    if (!event.altKey || !item || !(isUp || event.key === "ArrowDown")) return;
    event.preventDefault();
    const other = isUp ? item.previousElementSibling : item.nextElementSibling;
    if (!other) return;
    list.insertBefore(item, isUp ? other : other.nextSibling);
    item.focus();
    send(list, item);
  });
}

async function send(list, moved) {
  const form = byId(list.dataset.order);
  showKey(form);
  const fields = new URLSearchParams(new FormData(form));
  const asked = fetch(form.action, { method: "POST", body: fields, credentials: "same-origin" });
  const answer = await asked.catch(() => null);
  const items = [...list.children];
  const place = items.indexOf(moved) + 1;
  for (const [way, edge] of [["up", 0], ["down", items.length - 1]]) {
    items.forEach((item, at) => {
      const button = item.querySelector("button[value^='" + way + ":']");
      if (button) button.disabled = at === edge;
    });
  }
  const isKept = answer !== null && answer.ok;
  byId("moved").textContent = isKept ? "Moved to place " + place + " of " + items.length : "The order wasn't kept";
  if (answer !== null && !answer.ok) location.reload();
}

const HALF_A_SIGN = /(\x1b(\[[0-9;]{0,32})?|\r)$/;  // what the next chunk may make a colour or a line end of

// Output as it comes, without colours. What has no look of its own is spelt out, as the server does.
function plain(text) {
  return text.replace(/\x1b\[[0-9;]*m|\r(?=\n)/g, "").replace(/(?![ \n\t])[\p{C}\p{Z}\p{DI}\u2800]/gu, (sign) => {
    if (sign === "\r") return "\\r";
    const digits = sign.codePointAt(0).toString(16);
    return digits.length < 3 ? "\\x" + digits.padStart(2, "0")
      : digits.length < 5 ? "\\u" + digits.padStart(4, "0") : "\\U" + digits.padStart(8, "0");
  });
}

async function follow(box) {
  let cursor = box.dataset.cursor, held = "";
  box.scrollTop = box.scrollHeight;
  for (;;) {
    const address = box.dataset.output + "?wait_ms=20000&cursor=" + cursor;
    const answer = await fetch(address, { credentials: "same-origin" }).catch(() => null);
    if (answer && answer.status === 401) return leave();
    if (!answer || answer.status >= 500) {
      await later(RETRY_MS);
      continue;
    }
    if (!answer.ok) return;
    const read = await answer.json();
    const isAtEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 8;
    const text = held + read.chunk, cut = read.eof ? -1 : text.search(HALF_A_SIGN);
    held = cut < 0 ? "" : text.slice(cut);
    box.append(plain(cut < 0 ? text : text.slice(0, cut)));
    if (box.textContent.length > OUTPUT_CHARACTERS_MAX) box.textContent = box.textContent.slice(-OUTPUT_CHARACTERS_MAX);
    if (isAtEnd) box.scrollTop = box.scrollHeight;
    if (read.eof) return;
    cursor = read.cursor;
  }
}

document.addEventListener("DOMContentLoaded", () => {
  keepKey();
  const parts = [...document.querySelectorAll("[data-live]")];
  if (parts.length) new Live(parts);
  document.querySelectorAll("[data-slider]").forEach(slide);
  document.querySelectorAll("[data-output]").forEach(follow);
  const orderAll = () => document.querySelectorAll("[data-order]").forEach(order);
  orderAll();
  parts.forEach((part) => new MutationObserver(orderAll).observe(part, { childList: true }));
  document.querySelectorAll("[data-back]").forEach((link) => link.addEventListener("click", (event) => {
    event.preventDefault();
    history.back();
  }));
  const target = location.hash && byId(location.hash.slice(1));
  if (target) target.focus();
});
