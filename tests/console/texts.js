() => {
  const given = 'code, pre, kbd, time, textarea, body [lang], [data-given], .rendered, script, style, svg';
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const at = node.parentElement;
    if (at && (at.checkVisibility() || at.closest('option')) && !at.closest(given) && node.data.trim()) found.push(node.data.trim());
  }
  for (const node of document.querySelectorAll('[aria-label], [title], [placeholder]'))
    if (!node.closest('[data-given], time, code, pre'))
      for (const name of ['aria-label', 'title', 'placeholder'])
        if (node.getAttribute(name) && node.checkVisibility()) found.push(node.getAttribute(name));
  return [...new Set(found)];
}
