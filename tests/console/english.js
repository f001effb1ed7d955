() => {
  // Every visible text, also what was given: in a Chinese page whose data are Chinese, an English sentence is a fault.
  const skipped = 'code, pre, kbd, textarea, [lang]:not(html), .rendered, script, style, svg, .tools-starter, .tools-line-text';
  const sentence = /[A-Za-z][a-z]+(?:['’][a-z]+)?,? [a-z]+(?:['’][a-z]+)?,? [a-z]+/;
  const found = new Set();
  const look = (text, at) => {
    if (sentence.test(text) && !text.startsWith('toolyard ') && !at.closest(skipped)) found.add(text.trim().slice(0, 200));
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    if (node.parentElement?.checkVisibility()) look(node.data, node.parentElement);
  for (const node of document.querySelectorAll('[aria-label], [title], [placeholder]'))
    for (const name of ['aria-label', 'title', 'placeholder'])
      if (node.getAttribute(name) && node.checkVisibility()) look(node.getAttribute(name), node);
  return [...found];
}
