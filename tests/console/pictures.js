// How much two pictures differ: the share of pixels of which a channel differs by more than a shade, or why they cannot be compared.
async ([left, right]) => {
  const load = (data) => new Promise((done, failed) => { const image = new Image(); image.onload = () => done(image); image.onerror = failed; image.src = `data:image/png;base64,${data}`; });
  const [a, b] = [await load(left), await load(right)];
  if (a.width !== b.width || a.height !== b.height) return `${a.width}x${a.height} is not ${b.width}x${b.height}`;
  const pixels = (image) => { const canvas = new OffscreenCanvas(image.width, image.height), pen = canvas.getContext('2d'); pen.drawImage(image, 0, 0); return pen.getImageData(0, 0, image.width, image.height).data; };
  const [p, q] = [pixels(a), pixels(b)];
  let differ = 0;
  for (let at = 0; at < p.length; at += 4) if (Math.abs(p[at] - q[at]) > 24 || Math.abs(p[at + 1] - q[at + 1]) > 24 || Math.abs(p[at + 2] - q[at + 2]) > 24) differ += 1;
  return differ / (p.length / 4);
}
