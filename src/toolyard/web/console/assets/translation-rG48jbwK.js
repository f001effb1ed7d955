<<<<<<<< HEAD:src/toolyard/web/console/assets/translation-rG48jbwK.js
import{Kt as e}from"./common-ClEzQWLJ.js";function t(t){let n=t.translations[e.value]?.display_name||t.display_name;return!n||e.value!==`zh`&&/\p{Script=Han}/u.test(n)?t.name:n}function n(t){return t.translations[e.value]?.description||t.description}function r(t){return t.translations[e.value===`zh`?`zh`:`en`]?.parameters??{}}export{r as n,t as r,n as t};
========
import{qt as e}from"./common-BuXTfvAW.js";function t(t){let n=t.translations[e.value]?.display_name||t.display_name;return!n||e.value!==`zh`&&/\p{Script=Han}/u.test(n)?t.name:n}function n(t){return t.translations[e.value]?.description||t.description}function r(t){return t.translations[e.value===`zh`?`zh`:`en`]?.parameters??{}}export{r as n,t as r,n as t};
>>>>>>>> 44913094 (A model provider can be renamed in the console):src/toolyard/web/console/assets/translation-BW3zWeNU.js
