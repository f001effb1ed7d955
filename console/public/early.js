// Before the first paint: the theme and the language that this browser chose, so that nothing flashes.
(function () {
  var root = document.documentElement;
  var theme = localStorage.getItem("toolyard.theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  var lang = localStorage.getItem("toolyard.lang") || (/^zh/i.test(navigator.language) ? "zh" : "en");
  root.lang = lang === "zh" ? "zh-CN" : "en";
})();
