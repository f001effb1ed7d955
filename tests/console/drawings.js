(message) => [...message.querySelectorAll('figure.mermaid svg[role=img]')].map((svg) => {
  const view = svg.viewBox.baseVal, box = svg.getBBox(), shown = svg.getBoundingClientRect();
  const column = svg.closest('.rendered').getBoundingClientRect();
  return {
    nodes: svg.querySelectorAll('path, rect, polygon, text, line, circle').length,
    inside: box.x >= view.x - 1 && box.y >= view.y - 1 && box.x + box.width <= view.x + view.width + 1 && box.y + box.height <= view.y + view.height + 1,
    fits: shown.left >= column.left - 1 && shown.right <= column.right + 1 && shown.width > 20 && shown.height > 20,
    text: svg.textContent,
    top: svg.closest('figure').getBoundingClientRect().top, bottom: svg.closest('figure').getBoundingClientRect().bottom,
  };
})
