// Draws Mermaid diagrams apart from the console: this frame has no origin, no cookies and no network. It is given
// {id, source, dark} once it has said that it is ready, and answers {id, tree, width, height} or {id, error}. A tree is
// [tag, attributes, children]: no text of the diagram is ever parsed as markup by the page, which builds only the nodes
// and attributes it knows.
(function () {
  "use strict";
  var FONT =
    'system-ui, -apple-system, "Segoe UI", Roboto, "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", ' +
    '"Noto Sans CJK SC", sans-serif';
  var LONGEST = 50000;
  var MOST = 20000; // nodes of a drawing
  var SLACK = 120; // pixels
  // What a style sheet may have set; the tree carries it as attributes, so that the page needs no sheet.
  var INHERITED = [
    "fill",
    "fill-opacity",
    "fill-rule",
    "stroke",
    "stroke-width",
    "stroke-opacity",
    "stroke-dasharray",
    "stroke-linecap",
    "stroke-linejoin",
    "font-size",
    "font-weight",
    "font-style",
    "text-anchor",
    "visibility",
  ];
  var OWN = {
    opacity: "1",
    display: "inline",
    "dominant-baseline": "auto",
    "text-decoration-line": "none",
    "stop-color": "rgb(0, 0, 0)",
  };
  var LIGHT = {
    background: "#ffffff",
    primaryColor: "#e8eefc",
    primaryTextColor: "#1c1d1f",
    primaryBorderColor: "#2f5bd8",
    secondaryColor: "#e2f3e8",
    secondaryTextColor: "#1c1d1f",
    secondaryBorderColor: "#17693c",
    tertiaryColor: "#fdf0d8",
    tertiaryTextColor: "#1c1d1f",
    tertiaryBorderColor: "#8a5300",
    lineColor: "#54565b",
    textColor: "#1c1d1f",
    mainBkg: "#e8eefc",
    nodeBorder: "#2f5bd8",
    clusterBkg: "#f7f7f5",
    clusterBorder: "#8d8d86",
    edgeLabelBackground: "#ffffff",
    noteBkgColor: "#fdf0d8",
    noteTextColor: "#1c1d1f",
    noteBorderColor: "#8a5300",
    titleColor: "#1c1d1f",
    labelTextColor: "#1c1d1f",
    taskTextOutsideColor: "#1c1d1f",
    pie1: "#8ea9ef",
    pie2: "#8fd3a8",
    pie3: "#f3c67f",
    pie4: "#d6a3ee",
    pie5: "#8accdc",
    pie6: "#f0a59e",
    pieStrokeColor: "#ffffff",
    pieOuterStrokeColor: "#ffffff",
    pieOpacity: "1",
    xyChart: { plotColorPalette: "#2f5bd8,#9a4a00,#17693c,#8431a8" },
  };
  var DARK = {
    darkMode: true,
    background: "#1c1e21",
    primaryColor: "#232d4a",
    primaryTextColor: "#eceef0",
    primaryBorderColor: "#7c9cff",
    secondaryColor: "#1b3526",
    secondaryTextColor: "#eceef0",
    secondaryBorderColor: "#7fd6a0",
    tertiaryColor: "#3a2d16",
    tertiaryTextColor: "#eceef0",
    tertiaryBorderColor: "#f0bd6a",
    lineColor: "#b4b8be",
    textColor: "#eceef0",
    mainBkg: "#232d4a",
    nodeBorder: "#7c9cff",
    clusterBkg: "#25282c",
    clusterBorder: "#7c828a",
    edgeLabelBackground: "#1c1e21",
    noteBkgColor: "#3a2d16",
    noteTextColor: "#eceef0",
    noteBorderColor: "#f0bd6a",
    titleColor: "#eceef0",
    labelTextColor: "#eceef0",
    taskTextOutsideColor: "#eceef0",
    pie1: "#3c559f",
    pie2: "#2c6b45",
    pie3: "#7a5a1f",
    pie4: "#6d4385",
    pie5: "#2a6474",
    pie6: "#8a3f39",
    pieStrokeColor: "#1c1e21",
    pieOuterStrokeColor: "#1c1e21",
    pieOpacity: "1",
    pieTitleTextColor: "#eceef0",
    pieLegendTextColor: "#eceef0",
    pieSectionTextColor: "#eceef0",
    xyChart: { plotColorPalette: "#7c9cff,#f0b27a,#7fd6a0,#d6a3ee" },
  };
  var LENGTH = /^(?:width|height|r|rx|ry)$/;
  var GEOMETRY = /^(?:width|height|r|rx|ry|x|y|x1|x2|y1|y2|cx|cy|dx|dy|d|points|transform|viewBox)$/;
  var count = 0;

  /** Mermaid writes numbers that are none into some drawings; the browser would tell of each as an error. */
  function withoutBadNumbers(name, place) {
    var write = Element.prototype[name];
    Element.prototype[name] = function () {
      var value = String(arguments[place + 1]);
      if (GEOMETRY.test(arguments[place]) && /NaN|undefined|Infinity/.test(value)) return undefined;
      if (LENGTH.test(arguments[place]) && value[0] === "-") arguments[place + 1] = "0";
      return write.apply(this, arguments);
    };
  }
  withoutBadNumbers("setAttribute", 0);
  withoutBadNumbers("setAttributeNS", 1);

  function settings(dark) {
    return {
      startOnLoad: false,
      securityLevel: "strict",
      htmlLabels: false,
      suppressErrorRendering: true,
      logLevel: 5,
      maxTextSize: LONGEST,
      maxEdges: 500,
      theme: "base",
      themeVariables: Object.assign({ fontFamily: FONT, fontSize: "15px" }, dark ? DARK : LIGHT),
      fontFamily: FONT,
      darkMode: dark,
      flowchart: { htmlLabels: false, useMaxWidth: false },
      class: { htmlLabels: false, useMaxWidth: false },
      sequence: { useMaxWidth: false },
      gantt: { useMaxWidth: false, useWidth: 900 },
      state: { useMaxWidth: false },
      er: { useMaxWidth: false },
      pie: { useMaxWidth: false },
      // None of these can be changed from inside a diagram.
      secure: [
        "secure",
        "securityLevel",
        "startOnLoad",
        "maxTextSize",
        "maxEdges",
        "suppressErrorRendering",
        "htmlLabels",
        "flowchart",
        "class",
        "sequence",
        "theme",
        "themeVariables",
        "themeCSS",
        "fontFamily",
        "altFontFamily",
        "dompurifyConfig",
        "logLevel",
      ],
    };
  }

  /** Without settings of its own (directives and front matter), and with tags as the text they are, but line breaks. */
  function plain(source) {
    return source
      .replace(/(^|[^<])<(?=\/?[a-z!])(?!\/?br\b)/gi, "$1#lt;")
      .replace(/^\s*---[ \t]*\r?\n[\s\S]*?\r?\n[ \t]*---[ \t]*(?:\r?\n|$)/, "")
      .replace(/%%\{[\s\S]*?(?:\}%%|$)/g, "");
  }

  async function draw(asked) {
    var source = plain(String(asked.source));
    if (source.length > LONGEST) throw new Error("too large");
    window.mermaid.initialize(settings(Boolean(asked.dark)));
    var made = await window.mermaid.render("drawing" + ++count, source);
    document.body.innerHTML = made.svg;
    try {
      return told(document.body.querySelector("svg"));
    } finally {
      document.body.replaceChildren();
    }
  }

  function told(svg) {
    svg.removeAttribute("style");
    var view = svg.viewBox.baseVal;
    var box = svg.getBBox();
    var known = view && view.width > 0 && view.height > 0;
    // Labels may stick out a little; a line of today, years away, does not make the whole invisible.
    var x = known ? Math.max(view.x - SLACK, Math.min(view.x, box.x - 4)) : box.x - 4;
    var y = known ? Math.max(view.y - SLACK, Math.min(view.y, box.y - 4)) : box.y - 4;
    var right = known
      ? Math.min(view.x + view.width + SLACK, Math.max(view.x + view.width, box.x + box.width + 4))
      : box.x + box.width + 4;
    var bottom = known
      ? Math.min(view.y + view.height + SLACK, Math.max(view.y + view.height, box.y + box.height + 4))
      : box.y + box.height + 4;
    var nodes = { left: MOST };
    var whole = walked(svg, getComputedStyle(document.body), nodes);
    if (nodes.left <= 0) throw new Error("too large");
    ["id", "width", "height", "role", "aria-roledescription"].forEach(function (name) {
      delete whole[1][name];
    });
    return {
      tree: [
        "svg",
        Object.assign(whole[1], {
          viewBox: [x, y, right - x, bottom - y]
            .map(function (n) {
              return Math.round(n * 100) / 100;
            })
            .join(" "),
        }),
        whole[2],
      ],
      width: Math.ceil(right - x),
      height: Math.ceil(bottom - y),
    };
  }

  function walked(node, before, nodes) {
    if (nodes.left-- <= 0) return ["g", {}, []];
    var style = getComputedStyle(node);
    var attributes = {};
    for (var at = 0; at < node.attributes.length; at++) {
      var one = node.attributes[at];
      if (one.name !== "style" && one.name !== "class") attributes[one.name] = one.value;
    }
    INHERITED.forEach(function (name) {
      var value = style.getPropertyValue(name);
      if (value !== before.getPropertyValue(name)) attributes[name] = value;
      else delete attributes[name];
    });
    Object.keys(OWN).forEach(function (name) {
      var value = style.getPropertyValue(name);
      if (value && value !== OWN[name]) attributes[name] = value;
    });
    if (attributes.display && attributes.display !== "none") delete attributes.display;
    var children = [];
    node.childNodes.forEach(function (child) {
      if (child.nodeType === 3) {
        if (child.nodeValue.trim() || /^(text|tspan)$/.test(node.nodeName)) children.push(child.nodeValue);
      } else if (child.nodeType === 1 && child.nodeName.toLowerCase() === "foreignobject")
        children.push(lettered(child));
      else if (child.nodeType === 1 && !/^(style|script)$/i.test(child.nodeName))
        children.push(walked(child, style, nodes));
    });
    return [node.nodeName, attributes, children];
  }

  /** A label that is HTML inside the drawing, as lines of plain text in the middle of its box. */
  function lettered(box) {
    var width = Number(box.getAttribute("width")) || 0,
      height = Number(box.getAttribute("height")) || 0;
    var x = (Number(box.getAttribute("x")) || 0) + width / 2,
      y = (Number(box.getAttribute("y")) || 0) + height / 2;
    var lines = (box.innerText || box.textContent || "")
      .split("\n")
      .filter(function (line) {
        return line.trim();
      })
      .slice(0, 40);
    var inner = box.querySelector("*");
    return [
      "text",
      {
        "text-anchor": "middle",
        "dominant-baseline": "central",
        stroke: "none",
        fill: inner ? getComputedStyle(inner).color : "currentColor",
      },
      lines.map(function (line, at) {
        return ["tspan", { x: String(x), y: String(y + (at - (lines.length - 1) / 2) * 18) }, [line]];
      }),
    ];
  }

  var turn = Promise.resolve();
  addEventListener("message", function (event) {
    if (event.source !== parent || !event.data || typeof event.data.id !== "number") return;
    var id = event.data.id;
    turn = turn
      .then(function () {
        return draw(event.data);
      })
      .then(
        function (made) {
          parent.postMessage({ id: id, tree: made.tree, width: made.width, height: made.height }, "*");
        },
        function (error) {
          document.body.replaceChildren();
          parent.postMessage({ id: id, error: String((error && error.message) || error).slice(0, 2000) }, "*");
        },
      );
  });
  var script = document.createElement("script");
  script.src = "mermaid.min.js";
  script.onload = function () {
    parent.postMessage({ ready: true }, "*");
  };
  script.onerror = function () {
    parent.postMessage({ missing: true }, "*");
  };
  document.head.append(script);
})();
