// Adds keys, copying and the live selection count. Every page works without it.
(() => {
  "use strict";
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const rows = () => all("#table tbody tr");
  const boxes = () => all("#table tbody .pickcell input");
  let at = -1, last = null;
  const go = (step) => {
    const list = rows();
    at = Math.min(Math.max(at + step, 0), list.length - 1);
    list[at]?.querySelector("[data-lead] a, a")?.focus();
    list[at]?.scrollIntoView({ block: "nearest" });
  };
  const current = () => rows()[at]?.querySelector(".pickcell input");
  const count = () => {
    const ticked = boxes().filter((box) => box.checked).length;
    all("[data-ticked]").forEach((e) => { e.textContent = `${ticked} selected on this page`; });
    all("[data-ticked-count]").forEach((e) => { e.textContent = ticked ? ` ${ticked}` : ""; });
    all("[data-refresh]").forEach((e) => { e.textContent = ticked ? "Refresh paused while rows are ticked" : e.dataset.refresh; });
    const head = document.querySelector("[data-all]");
    if (!head) return;
    const checked = ticked > 0 && ticked === boxes().length;
    Object.assign(head, { hidden: false, checked, indeterminate: ticked > 0 && !checked });
  };
  const act = (verb) => {
    const button = document.querySelector(`[data-verb="${verb}"]`);
    if (!button) return;
    if (boxes().length && !boxes().some((box) => box.checked)) {
      if (!current()) return;
      current().checked = true;
      count();
    }
    button.click();
  };
  const keys = {
    "/": () => document.getElementById("find")?.focus(),
    "?": () => document.getElementById("help")?.togglePopover(),
    j: () => go(1),
    k: () => go(-1),
    x: (shiftKey) => current()?.dispatchEvent(new MouseEvent("click", { shiftKey, bubbles: true })),
    r: () => act("requeue"),
    d: () => act("discard"),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input:not([type=checkbox]), textarea, select")) return;
    const does = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (does) { event.preventDefault(); does(event.shiftKey); }
  });
  document.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy]");
    if (copy) {
      const what = copy.dataset.copy;
      const text = what.startsWith("#") ? document.querySelector(what).textContent : what;
      navigator.clipboard?.writeText(text);
    }
    if (event.target.closest("[data-print]")) window.print();
    const list = boxes(), box = list.indexOf(event.target);
    if (box >= 0) {
      if (event.shiftKey && last !== null) {
        const [from, to] = [Math.min(last, box), Math.max(last, box)];
        list.slice(from, to + 1).forEach((b) => { b.checked = list[box].checked; });
      }
      last = box;
      count();
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) boxes().forEach((b) => { b.checked = event.target.checked; });
    if (event.target.matches("[data-submit]")) event.target.form.submit();
    count();
  });
  document.addEventListener("reset", () => setTimeout(count));
  document.addEventListener("htmx:beforeRequest", (event) => {
    const used = boxes().some((box) => box.checked) || document.activeElement?.closest("#table");
    if (document.hidden || used) event.preventDefault();
  });
  document.addEventListener("htmx:afterSettle", count);
  count();
})();
