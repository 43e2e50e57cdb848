// The scrolling box of messages. It follows the end while the user is there, and otherwise keeps the reading position; only the
// user moves the text.

import { Component, html } from './preact.js';
import { pouring } from './markdown.js';

/** Distance in pixels that counts as the end, and distance from either edge at which more is loaded. */
const AT_END = 32;
const NEAR = 1_200;

/** Milliseconds after which unfinished messages are shown on a slow machine. */
const BUILDING = 4_000;

/** Milliseconds after a click in which growth counts as unfolding, and is not followed. */
const UNFOLDING = 400;

/**
 * `onNear("older" | "newer")` is called near an edge, `onEnd(bool)` when the end becomes visible or invisible. `hold` prevents
 * following, because the log does not contain the end of the session. `api.toEnd()`, `api.show(id)` and `api.leaf(±1)` move it.
 */
export class Log extends Component {
  box = null;

  list = null;

  stuck = true;

  top = 0;

  // `performance.now()` is smaller than this at first, and nobody has clicked yet.
  pressed = -Infinity;

  componentDidMount() {
    const { api } = this.props;
    api.current = { toEnd: this.toEnd, show: this.show, keep: this.keep, leaf: this.leaf, focus: () => this.box.focus() };
    this.observer = new ResizeObserver(this.grown);
    this.observer.observe(this.list);
    this.observer.observe(this.box);
    this.follow();
    // On a slow machine, texts take several frames: the text to be read must not be moved by those above it.
    if (!document.hidden) this.build(pouring(this.list), performance.now() + BUILDING);
  }

  /**
   * Shows the messages when those in and near the view are complete. Further up, the browser uses a size that does not depend on
   * their text.
   */
  build(texts, until) {
    if (!this.box) return;
    const left = performance.now() < until ? pouring(this.list, texts) : [];
    const near = this.box.getBoundingClientRect().top - 2 * this.box.clientHeight;
    const growing = left.some(({ root }) => root.closest('.chat-list > *').getBoundingClientRect().bottom > near);
    this.box.classList.toggle('building', growing);
    if (growing) requestAnimationFrame(() => this.build(left, until));
  }

  componentWillUnmount() {
    this.observer.disconnect();
    this.props.api.current = null;
  }

  /** Records the position at the upper edge before an update. */
  getSnapshotBeforeUpdate() {
    if (this.stuck) return null;
    const edge = this.box.getBoundingClientRect().top;
    for (const child of this.list.children) {
      const { top, bottom } = child.getBoundingClientRect();
      if (bottom > edge) return { child, top };
    }
    return null;
  }

  componentDidUpdate(before, state, anchor) {
    if (this.stuck) this.follow();
    else if (anchor?.child.isConnected) {
      const moved = anchor.child.getBoundingClientRect().top - anchor.top;
      if (Math.abs(moved) >= 1) this.box.scrollTop += moved;
    }
    this.look();
  }

  follow() {
    if (this.props.hold) return;
    this.box.scrollTop = this.box.scrollHeight;
    this.top = this.box.scrollTop;
  }

  grown = () => {
    if (!this.box) return;
    if (this.stuck && performance.now() - this.pressed > UNFOLDING) this.follow();
    else if (this.stuck) this.stick(this.distance() < AT_END);
    // If nothing can be scrolled any more, the end is visible.
    else if (this.box.scrollHeight <= this.box.clientHeight && !this.props.hold) this.stick(true);
    this.look();
  };

  distance() {
    return this.box.scrollHeight - this.box.clientHeight - this.box.scrollTop;
  }

  scrolled = () => {
    if (!this.box) return;
    const { scrollTop } = this.box;
    const distance = this.distance();
    // Text that grows below does not cause scrolling; only the user does.
    if (scrollTop < this.top - 1 && distance > 1) this.stick(false);
    else if (distance < AT_END && !this.props.hold) this.stick(true);
    this.top = scrollTop;
    this.look();
  };

  stick(stuck) {
    if (stuck === this.stuck) return;
    this.stuck = stuck;
    this.props.onEnd(stuck);
  }

  look() {
    const { onNear } = this.props;
    if (this.box.scrollTop < NEAR) onNear('older');
    if (this.distance() < NEAR) onNear('newer');
  }

  toEnd = () => {
    this.stick(true);
    this.follow();
  };

  /** Scrolls to a message. */
  show = (id) => {
    const article = this.list.querySelector(`[data-message="${Number(id)}"]`);
    if (!article) return;
    this.stick(false);
    article.scrollIntoView({ block: 'center' });
    this.top = this.box.scrollTop;
    article.focus({ preventScroll: true });
    // The surrounding messages get their size only now that they are visible.
    requestAnimationFrame(() => article.scrollIntoView({ block: 'center' }));
  };

  /** Scrolls so that the result of `find` is at the height `top` of the window, as soon as it is drawn; `done` receives it. */
  keep = (find, top, done, frames = 120) => {
    if (!this.box) return;
    const one = find();
    if (!one) {
      if (frames) requestAnimationFrame(() => this.keep(find, top, done, frames - 1));
      return;
    }
    const put = () => {
      if (!this.box) return;
      this.box.scrollTop += one.getBoundingClientRect().top - top;
      this.top = this.box.scrollTop;
      this.stick(this.distance() < AT_END && !this.props.hold);
    };
    this.stuck = false;
    put();
    done(one);
    // The surrounding messages get their size only now that they are visible.
    requestAnimationFrame(put);
  };

  /** Scrolls by a page. */
  leaf = (by) => this.box.scrollBy({ top: by * this.box.clientHeight * 0.9 });

  /** A menu overlays the text and unfolds nothing. */
  press = ({ target }) => { if (!target.closest('.menu')) this.pressed = performance.now(); };

  render({ label, children }) {
    return html`<div class="chat-log" ref=${(box) => { this.box = box; }} role="log" aria-live="off" aria-label=${label}
      tabindex="0" onScroll=${this.scrolled} onClick=${this.press}>
      <div class="chat-list" ref=${(list) => { this.list = list; }}>${children}</div>
    </div>`;
  }
}
