(phone) => {
  const faults = [];
  const root = document.scrollingElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`the page scrolls sideways: ${root.scrollWidth} > ${root.clientWidth}`);
  const main = document.querySelector('main');
  if (main && main.scrollWidth > main.clientWidth + 1) faults.push(`main scrolls sideways: ${main.scrollWidth} > ${main.clientWidth}`);
  const told = (node) => `<${node.tagName.toLowerCase()} class="${node.getAttribute('class') ?? ''}"> "${(node.textContent || node.getAttribute('aria-label') || '').trim().slice(0, 60)}"`;
  const scrolls = (node) => { for (let up = node.parentElement; up; up = up.parentElement) { const s = getComputedStyle(up); if (/(auto|scroll|hidden|clip)/.test(s.overflowX) && up !== main && up !== document.body && up !== root) return true; } return false; };
  const shown = [...document.querySelectorAll('body *')].filter((node) => node.checkVisibility({opacityProperty: true, visibilityProperty: true}) && !node.closest('.hush, .skip, iframe, svg, .katex'));
  for (const node of shown) {
    const box = node.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) continue;
    if ((box.right > innerWidth + 1 || box.left < -1) && !scrolls(node)) faults.push(`outside the window: ${told(node)} ${Math.round(box.left)}..${Math.round(box.right)}`);
    const style = getComputedStyle(node);
    const text = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (text && style.overflowX !== 'visible' && !/auto|scroll/.test(style.overflowX) && style.whiteSpace.includes('nowrap') && node.scrollWidth > node.clientWidth + 1 && (style.textOverflow !== 'ellipsis' || !(node.title || node.closest('[title]'))))
      faults.push(`cut without a title: ${told(node)}`);
  }
  // Where a box ends, wheel and finger move what is around it; only what covers the page keeps them.
  for (const node of shown)
    if (!node.closest('dialog') && getComputedStyle(node).overscrollBehaviorY !== 'auto') faults.push(`holds the wheel: ${told(node)}`);
  const controls = shown.filter((node) => node.matches('a[href], button, input, select, textarea, [role=tab], summary') && !node.closest('.rendered') && getComputedStyle(node).opacity !== '0');
  for (const node of controls) {
    const box = node.getBoundingClientRect();
    if (phone && node.matches('button, select, [role=tab], input:not([type=checkbox], [type=radio])') && (box.height < 39.5)) faults.push(`too small for a thumb: ${told(node)} ${Math.round(box.width)}x${Math.round(box.height)}`);
  }
  // What of a box can be seen: no more than each box around it lets through.
  const seen = (node, box) => {
    let [left, top, right, bottom] = [Math.max(0, box.left), Math.max(0, box.top), Math.min(innerWidth, box.right), Math.min(innerHeight, box.bottom)];
    for (let up = node; up && up !== document.body; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.overflowX === 'visible' && style.overflowY === 'visible') continue;
      const frame = up.getBoundingClientRect();
      [left, top, right, bottom] = [Math.max(left, frame.left), Math.max(top, frame.top), Math.min(right, frame.right), Math.min(bottom, frame.bottom)];
    }
    return {left, top, right, bottom, width: right - left, height: bottom - top};
  };
  const inDialog = Boolean(document.querySelector('dialog[open]'));
  const texts = shown.filter((node) => node.childElementCount === 0 && node.textContent.trim() && Boolean(node.closest('dialog')) === inDialog);
  const lines = texts.slice(0, 800).flatMap((node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return [...range.getClientRects()].slice(0, 8).map((box) => [node, seen(node, box)]);
  }).filter(([node, box]) => {
    if (box.width < 2 || box.height < 2) return false;
    const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return top && (top === node || node.contains(top) || top.contains(node));
  });
  for (let a = 0; a < lines.length; a++) for (let b = a + 1; b < lines.length; b++) {
    const [p, m] = lines[a], [q, n] = lines[b];
    if (p === q) continue;
    const w = Math.min(m.right, n.right) - Math.max(m.left, n.left), h = Math.min(m.bottom, n.bottom) - Math.max(m.top, n.top);
    if (w > 2 && h > 3 && w * h > 0.2 * Math.min(m.width * m.height, n.width * n.height)) faults.push(`texts overlap: ${told(p)} and ${told(q)}`);
  }
  return [...new Set(faults)].slice(0, 20);
}
