// A list that is reordered by dragging handles or with the arrow keys; new members can be dragged into it.
import { el, say } from "./api.js";

const FAR = 6; // pixels after which a press is a drag
const EDGE = 48; // pixels from the window's edge within which the page moves along ...
const STEP = 12; // ... by so many a frame

export class Ordered {
  // move(from, to): move a member; insert(what, to): add a new member; name(index): return the name of a member
  constructor(list, { move, insert, name }) {
    this.list = list;
    this.move = move;
    this.insert = insert;
    this.name = name;
    this.mark = el("div", { class: "drop-mark" });
  }

  get members() {
    return [...this.list.children].filter((child) => child !== this.mark);
  }

  // The handle of a member.
  handle(place, count) {
    const element = el(
      "button",
      {
        type: "button",
        class: "second handle",
        "data-handle": place,
        "aria-label": `Move ${this.name(place)}: step ${place + 1} of ${count}; arrow keys move it`,
        title: "Drag, or press the arrow keys",
      },
      "⠿",
    );
    element.addEventListener("pointerdown", (event) =>
      this.take(
        event,
        element,
        (to) => {
          if (to !== place && to !== place + 1) this.put(place, to > place ? to - 1 : to);
        },
        this.members[place],
      ),
    );
    element.addEventListener("keydown", (event) => {
      const to = place + ({ ArrowUp: -1, ArrowDown: 1 }[event.key] || 0);
      if (to === place) return;
      event.preventDefault();
      if (to >= 0 && to < count) this.put(place, to);
    });
    return element;
  }

  put(from, to) {
    const name = this.name(from);
    this.move(from, to);
    this.list.querySelector(`:scope > * > .item-head [data-handle="${to}"]`)?.focus();
    say(`${name} is step ${to + 1} of ${this.members.length}.`);
  }

  // An element outside the list that can be dragged into it; a click or Enter appends it.
  source(button, what) {
    button.addEventListener("click", () => this.insert(what, this.members.length));
    button.addEventListener("pointerdown", (event) => this.take(event, button, (to) => this.insert(what, to)));
    return button;
  }

  place(y) {
    const at = this.members.findIndex((member) => {
      const box = member.getBoundingClientRect();
      return y < box.top + box.height / 2;
    });
    return at < 0 ? this.members.length : at;
  }

  over(x, y) {
    const box = this.list.getBoundingClientRect();
    return x >= box.left - 40 && x <= box.right + 40 && y >= box.top - 60 && y <= box.bottom + 60;
  }

  // Follow the pointer until it is released; Escape cancels the drag.
  take(event, from, drop, member = null) {
    if (event.button) return;
    const start = [event.clientX, event.clientY];
    let dragging = false,
      hand = start;
    const show = () => {
      if (this.over(...hand)) this.list.insertBefore(this.mark, this.members[this.place(hand[1])] || null);
      else this.mark.remove();
    };
    const along = () => {
      // scroll the page while the pointer is at its edge
      if (!dragging) return;
      const by = hand[1] < EDGE ? -STEP : hand[1] > innerHeight - EDGE ? STEP : 0;
      if (by) {
        scrollBy({ top: by, behavior: "instant" });
        show();
      }
      requestAnimationFrame(along);
    };
    const follow = (now) => {
      if (!dragging && Math.hypot(now.clientX - start[0], now.clientY - start[1]) < FAR) return;
      now.preventDefault();
      hand = [now.clientX, now.clientY];
      if (!dragging) {
        dragging = true;
        document.body.classList.add("dragging");
        (member || from).classList.add("held");
        requestAnimationFrame(along);
      }
      show();
    };
    const end = (now) => {
      for (const [name, act] of listened) removeEventListener(name, act, true);
      const dropped = dragging && now.type === "pointerup";
      const inside = this.mark.isConnected;
      const to = this.members.findIndex((one) => this.mark.nextElementSibling === one);
      this.mark.remove();
      document.body.classList.remove("dragging");
      (member || from).classList.remove("held");
      if (dragging) addEventListener("click", swallow, { capture: true, once: true }); // letting go is no click
      setTimeout(() => removeEventListener("click", swallow, true));
      dragging = false;
      if (dropped && inside) drop(to < 0 ? this.members.length : to);
    };
    const swallow = (click) => {
      click.preventDefault();
      click.stopPropagation();
    };
    const escape = (key) => {
      if (key.key === "Escape") end(key);
    };
    /** @type {[string, (event: any) => void][]} */
    const listened = [
      ["pointermove", follow],
      ["pointerup", end],
      ["pointercancel", end],
      ["keydown", escape],
    ];
    for (const [name, act] of listened) addEventListener(name, act, true);
  }
}
