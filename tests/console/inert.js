() => {
  const faults = [];
  for (const node of document.querySelectorAll('main *, dialog *')) {
    const told = `<${node.localName}> ${node.textContent.slice(0, 60)}`;
    if (node.matches('script, iframe, object, embed, form, base, meta, link, style, applet, frame')) faults.push(`active node: ${told}`);
    for (const { name, value } of node.attributes) {
      if (/^on/i.test(name)) faults.push(`listener ${name}: ${told}`);
      if (/^(href|xlink:href|src|srcset|action|formaction|data|poster|background|ping)$/i.test(name)) {
        if (/^[\s\x00-\x1f]*(javascript|vbscript|data:text)/i.test(value)) faults.push(`runs ${value.slice(0, 60)}: ${told}`);
        if (name !== 'href' && /^(https?:)?\/\//i.test(value)) faults.push(`loads ${value.slice(0, 60)}: ${told}`);
      }
    }
  }
  return faults;
}
