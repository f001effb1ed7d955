/* The ids of the first rows of a list of which only a part is in the page, in their order, read from top to bottom. */
async (most) => {
  const key = location.pathname === '/tasks' ? 'task' : 'call';
  const found = new Map();
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const list = () => document.querySelector('main .virtual');
  // The rows once all that are in sight are there: a busy machine draws them later than it scrolls.
  const drawn = async () => {
    for (let tries = 0; ; tries++) {
      await frame();
      const rows = [...list().querySelectorAll('[role=listitem]')], view = list().getBoundingClientRect();
      const boxes = rows.map((row) => row.getBoundingClientRect());
      const end = Math.min(view.bottom, list().firstElementChild.getBoundingClientRect().bottom);
      const isWhole = boxes.some((box) => box.top <= view.top + 1) && boxes.some((box) => box.bottom >= end - 1);
      if (isWhole || tries > 500) return rows;
    }
  };
  list().scrollTop = 0;
  for (let last = -1; ; ) {
    const seen = (await drawn()).map((row) => [Number(row.getAttribute('aria-posinset')), new URL(row.querySelector('[data-row]').href).searchParams.get(key)]);
    if (new Set(seen.map(([, id]) => id)).size < seen.length) throw new Error(`a row stands twice: ${seen}`);
    for (const [at, id] of seen) found.set(at, id);
    if (list().scrollTop === last || found.size >= most) break;
    last = list().scrollTop;
    list().scrollTop += list().clientHeight;
  }
  return [...found].sort((a, b) => a[0] - b[0]).map(([, id]) => id);
}
