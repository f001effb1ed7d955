<<<<<<<< HEAD:src/toolyard/web/console/assets/translation-6fPMUy46.js
import{Yt as e}from"./common-BTyaWCuw.js";function t(t){let n=t.translations[e.value]?.display_name||t.display_name;return!n||e.value!==`zh`&&/\p{Script=Han}/u.test(n)?t.name:n}function n(t){return t.translations[e.value]?.description||t.description}function r(t){return t.translations[e.value===`zh`?`zh`:`en`]?.parameters??{}}export{r as n,t as r,n as t};
========
import{Ut as e}from"./common-Du9itihu.js";function t(t){let n=t.translations[e.value]?.display_name||t.display_name;return!n||e.value!==`zh`&&/\p{Script=Han}/u.test(n)?t.name:n}function n(t){return t.translations[e.value]?.description||t.description}function r(t){return t.translations[e.value===`zh`?`zh`:`en`]?.parameters??{}}export{r as n,t as r,n as t};
>>>>>>>> h-pagefix:src/toolyard/web/console/assets/translation-DyB4bgP_.js
