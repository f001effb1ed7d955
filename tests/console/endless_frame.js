// Stands in for the frame that draws: one diagram never ends (it says nothing, or it keeps its process busy), one is
// larger than any page should build, others are fine.
(function () {
  addEventListener("message", function (event) {
    var id = event.data.id;
    if (event.data.source.includes("endless")) {
      for (var until = Date.now() + ("WAY" === "busy" ? 8000 : 0); Date.now() < until; );
      return;
    }
    if (event.data.source.includes("huge")) return parent.postMessage({ id: id, tree: ["svg", {}, new Array(20001).fill(["g", {}, []])] }, "*");
    parent.postMessage({ id: id, tree: ["svg", { viewBox: "0 0 90 30" }, [["text", { x: "5", y: "20" }, ["quick"]]]], width: 90, height: 30 }, "*");
  });
  parent.postMessage({ ready: true }, "*");
})();
