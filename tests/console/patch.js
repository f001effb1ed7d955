/* Every changed file of a patch as it is shown: its name, its counts, and its hunks line by line. A line is
   [old number, new number, sign, text]; side by side each row is the line at the left, then the one at the right. */
() => {
  const text = (cell) => {
    const copy = cell.cloneNode(true);
    const marks = ['.patch-mark', '.patch-cr', '.patch-endless'].map((one) => copy.querySelector(one));
    for (const mark of marks) mark?.remove();
    return copy.textContent + (marks[1] ? '\r' : '') + (marks[2] ? '\n\\' : '');
  };
  const number = (cell) => (cell.textContent === '' ? null : Number(cell.textContent));
  return [...document.querySelectorAll('.patch-file')].map((file) => {
    const hunks = [];
    for (const row of file.querySelectorAll('tbody tr')) {
      if (row.matches('.patch-hunk')) { hunks.push({head: row.textContent, lines: []}); continue; }
      const lines = hunks.at(-1).lines;
      const [a, b, c, d] = row.cells;
      if (!file.querySelector('.patch-split')) lines.push([number(a), number(b), c.textContent, text(d)]);
      else {
        if (!b.matches('.patch-none')) lines.push(['left', number(a), b.querySelector('.patch-mark').textContent, text(b)]);
        if (!d.matches('.patch-none')) lines.push(['right', number(c), d.querySelector('.patch-mark').textContent, text(d)]);
      }
    }
    const count = (one) => Number(file.querySelector(`summary ${one}`).textContent.slice(1));
    return {path: file.querySelector('.patch-path').textContent, added: count('.patch-plus'), removed: count('.patch-minus'), hunks};
  });
}
