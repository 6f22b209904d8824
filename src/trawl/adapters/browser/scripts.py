"""What runs beside a page, in a world of its own whose names the page can neither see nor change."""

from typing import Final

WATCH: Final = """
(() => {
  if (globalThis.trawlChanged === undefined) {
    globalThis.trawlChanged = performance.now();
    const note = () => { globalThis.trawlChanged = performance.now(); };
    new MutationObserver(note).observe(document, {subtree: true, childList: true, characterData: true});
  }
  return document.readyState === "loading" ? 0 : performance.now() - globalThis.trawlChanged;
})()
"""
"""Milliseconds since the document was last changed; 0 while it is being read."""

TAKE: Final = """
(() => {
  const roots = [];
  const find = (node) => {
    const walker = document.createTreeWalker(node, NodeFilter.SHOW_ELEMENT);
    for (let at = walker.currentNode; at; at = walker.nextNode()) {
      if (at.shadowRoot) { roots.push(at); find(at.shadowRoot); }
    }
  };
  find(document.documentElement);
  for (const host of roots.reverse()) {
    for (const slot of host.shadowRoot.querySelectorAll("slot")) {
      const given = slot.assignedNodes();
      if (given.length) { slot.replaceWith(...given.map((node) => node.cloneNode(true))); }
      else { slot.replaceWith(...slot.childNodes); }
    }
    for (const style of host.shadowRoot.querySelectorAll("style")) { style.remove(); }
    host.replaceChildren(...host.shadowRoot.childNodes);
  }
  const html = "<!DOCTYPE html>" + document.documentElement.outerHTML;
  return html.length > LIMIT ? {chars: html.length} : {html, url: location.href};
})()
"""
"""The DOM as HTML, what stands in open shadow roots at its place; its size alone if it is larger than LIMIT."""
