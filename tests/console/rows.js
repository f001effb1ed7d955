/* The ids of the first rows of a list of which only a part is in the page, in their order, read from top to bottom. */
async (most) => {
  const box = document.querySelector('main .virtual');
  const key = location.pathname === '/tasks' ? 'task' : 'call';
  const found = new Map();
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  box.scrollTop = 0;
  for (let last = -1; ; ) {
    await frame();
    const seen = [...box.querySelectorAll('[role=listitem]')].map((row) => [Number(row.getAttribute('aria-posinset')), new URL(row.querySelector('[data-row]').href).searchParams.get(key)]);
    if (new Set(seen.map(([, id]) => id)).size < seen.length) throw new Error(`a row stands twice: ${seen}`);
    for (const [at, id] of seen) found.set(at, id);
    if (box.scrollTop === last || found.size >= most) break;
    last = box.scrollTop;
    box.scrollTop += box.clientHeight;
  }
  return [...found].sort((a, b) => a[0] - b[0]).map(([, id]) => id);
}
