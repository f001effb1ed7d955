(log) => {
  const faults = [];
  for (const node of log.querySelectorAll('*')) {
    const told = `<${node.localName}> ${node.outerHTML.slice(0, 120)}`;
    if (node.matches('script, iframe, object, embed, form, base, meta, link, style, applet, frame, foreignObject, animate, set, image, feImage')) faults.push(`active node: ${told}`);
    for (const { name, value } of node.attributes) {
      if (/^on|^style$/i.test(name) && !(name === 'style' && node.closest('.katex, .stage, .chart-box, .chat-chapter'))) faults.push(`${name}: ${told}`);
      if (!/^(href|xlink:href|src|srcset|action|formaction|data|poster|background|ping|cite)$/i.test(name)) continue;
      if (/^[\s\x00-\x1f]*(javascript|vbscript|data:text|file|blob)/i.test(value)) faults.push(`runs ${value.slice(0, 60)}: ${told}`);
      if (name !== 'href' && /^[\s\x00-\x1f]*([a-z+.-]+:)?[/\\]{2}/i.test(value)) faults.push(`loads ${value.slice(0, 60)}: ${told}`);
      if (name === 'href' && node.localName === 'a' && !/^\//.test(value) && !value.startsWith('#') && !/noopener/.test(node.rel)) faults.push(`open to its opener: ${told}`);
      if (/^data:image\/svg/.test(value) && node.localName !== 'img') faults.push(`svg outside of an image: ${told}`);
    }
  }
  for (const frame of document.querySelectorAll('iframe'))
    if (frame.getAttribute('sandbox') !== 'allow-scripts' || new URL(frame.src).pathname !== '/console/draw/frame.html') faults.push(`a frame: ${frame.outerHTML}`);
  return faults.slice(0, 20);
}
