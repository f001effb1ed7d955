// Before the first paint: the theme and the language that this browser chose, so that nothing flashes. And the question
// whose answer every page waits for, sent while the scripts are still on their way: `openSession` takes the answer.
(function () {
  var root = document.documentElement;
  var theme = localStorage.getItem("toolyard.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  var lang = localStorage.getItem("toolyard.lang") || (/^zh/i.test(navigator.language) ? "zh" : "en");
  root.lang = lang === "zh" ? "zh-CN" : "en";
  var base = document.querySelector('meta[name="base"]').content;
  window.earlySession = fetch(base + "v1/session", { headers: { Accept: "application/json" } });
  window.earlySession.catch(function () {}); // whoever takes it says what is wrong
})();
