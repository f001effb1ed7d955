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
  const controls = shown.filter((node) => node.matches('a[href], button, input, select, textarea, [role=tab], summary') && !node.closest('.rendered') && getComputedStyle(node).opacity !== '0');
  for (const node of controls) {
    const box = node.getBoundingClientRect();
    if (phone && node.matches('button, select, [role=tab], input:not([type=checkbox], [type=radio])') && (box.height < 39.5)) faults.push(`too small for a thumb: ${told(node)} ${Math.round(box.width)}x${Math.round(box.height)}`);
  }
  const texts = shown.filter((node) => node.childElementCount === 0 && node.textContent.trim() && !node.closest('dialog') === !document.querySelector('dialog[open]'));
  const boxes = texts.slice(0, 800).map((node) => { const range = document.createRange(); range.selectNodeContents(node); return [node, range.getBoundingClientRect()]; }).filter(([node, box]) => { if (box.width < 2 || box.height < 2) return false; const x = box.left + box.width / 2, y = box.top + box.height / 2; if (x < 0 || y < 0 || x >= innerWidth || y >= innerHeight) return false; const top = document.elementFromPoint(x, y); return top && (top === node || node.contains(top) || top.contains(node)); });
  for (let a = 0; a < boxes.length; a++) for (let b = a + 1; b < boxes.length; b++) {
    const [p, m] = boxes[a], [q, n] = boxes[b];
    const w = Math.min(m.right, n.right) - Math.max(m.left, n.left), h = Math.min(m.bottom, n.bottom) - Math.max(m.top, n.top);
    if (w > 2 && h > 3 && w * h > 0.2 * Math.min(m.width * m.height, n.width * n.height)) faults.push(`texts overlap: ${told(p)} and ${told(q)}`);
  }
  return [...new Set(faults)].slice(0, 20);
}
