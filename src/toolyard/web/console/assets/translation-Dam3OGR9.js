<<<<<<<< HEAD:src/toolyard/web/console/assets/translation-Dam3OGR9.js
import{Rt as e}from"./common-BuCTwFGi.js";function t(t){let n=t.translations[e.value]?.display_name||t.display_name;return!n||e.value!==`zh`&&/\p{Script=Han}/u.test(n)?t.name:n}function n(t){return t.translations[e.value]?.description||t.description}function r(t){return t.translations[e.value===`zh`?`zh`:`en`]?.parameters??{}}export{r as n,t as r,n as t};
========
import{Rt as e}from"./common-D0wg2IzW.js";function t(t){let n=t.translations[e.value]?.display_name||t.display_name;return!n||e.value!==`zh`&&/\p{Script=Han}/u.test(n)?t.name:n}function n(t){return t.translations[e.value]?.description||t.description}function r(t){return t.translations[e.value===`zh`?`zh`:`en`]?.parameters??{}}export{r as n,t as r,n as t};
>>>>>>>> h-backfix:src/toolyard/web/console/assets/translation-DLpJCa_7.js
