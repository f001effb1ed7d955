<<<<<<<< HEAD:src/toolyard/web/console/assets/markdown-file-BZLPZ5fy.js
import{a as e,d as t,i as n,o as r,r as i}from"./chat-DrTTyLHu.js";var a=1,o=`<!-- toolyard:`,s=/(?:^|\n)<!-- toolyard:conversation\b/,c=/(?:^|\n)<!-- toolyard:conversation\b[^\n]*\r\n/,l=/(?:^|\n)<!-- toolyard:/g,u=/^<!-- toolyard:([a-z]+)(?: (\{[^\n]*\}))? -->\s*$/,d=[`user`,`assistant`],f=[`text`,`image`,`file`,`call`,`end`];async function p(e,t,n){let i=r(e)&&`# ${r(e)}`,o=await Promise.all(n.map(m));return`${[h(`conversation`,i,{version:a,model:t}),...o.flat()].join(`
========
import{a as e,d as t,i as n,o as r,r as i}from"./chat-BKZGVjBt.js";var a=1,o=`<!-- toolyard:`,s=/(?:^|\n)<!-- toolyard:conversation\b/,c=/(?:^|\n)<!-- toolyard:conversation\b[^\n]*\r\n/,l=/(?:^|\n)<!-- toolyard:/g,u=/^<!-- toolyard:([a-z]+)(?: (\{[^\n]*\}))? -->\s*$/,d=[`user`,`assistant`],f=[`text`,`image`,`file`,`call`,`end`];async function p(e,t,n){let i=r(e)&&`# ${r(e)}`,o=await Promise.all(n.map(m));return`${[h(`conversation`,i,{version:a,model:t}),...o.flat()].join(`
>>>>>>>> h-pagefix:src/toolyard/web/console/assets/markdown-file-By5GkIYq.js

`)}\n`}async function m(e){let{role:t,at:r,model:a,state:o,fault:s}=e,c={at:r,...a&&{model:a},...o!==`done`&&{state:o},...s&&{fault:s}},l=await n(e),u=l[0]?.kind===`text`?l.shift():void 0;return[h(t,[i(e),...u?[u.markdown]:[]].join(`

`),c),...l.map(({kind:e,markdown:t,facts:n})=>h(e,t,n))]}function h(e,t,n){return`<!-- toolyard:${e}${n?` ${JSON.stringify(n).replaceAll(`>`,`\\u003e`)}`:``} -->\n${t.replace(l,`$&:`)}`}function g(e){return s.test(e)}function _(e){let[{facts:t,lines:n},...r]=b(e),i=[];for(let e of r)d.includes(e.kind)&&i.push({...e.facts,role:e.kind,text:``,images:[],attachments:[],pieces:[]}),v(i[i.length-1],e);let a=n.find(e=>e.startsWith(`# `))?.slice(2)??``;return{...t,title:a.trim(),messages:i}}function v(t,{kind:n,facts:r,lines:i}){let a=e=>t[e];if(n===`image`)a(`images`).push(/\((data:[^)]*)\)/.exec(i.join(`
`))?.[1]??``);else if(n===`file`)a(`attachments`).push({...r,text:e(i)});else if(n===`call`)a(`pieces`).push({...r,kind:n,text:e(i)});else if(n!==`end`){let e=y(n,i).join(`
`);t.role===`user`?t.text=[t.text,e].filter(Boolean).join(`

`):e&&a(`pieces`).push({kind:`text`,text:e})}}function y(e,t){return e===`text`||!t[0]?.startsWith(`## `)?t:t.slice(t[1]===``?2:1)}function b(e){let n=(c.test(e)?e.replaceAll(`\r
`,`
`):e).replace(/\n$/,``).split(`
`),r=n.findIndex(e=>s.test(e)),i=[];return n.slice(r).forEach((e,n)=>{let a=i[i.length-1];if(a&&!e.startsWith(o))return void a.lines.push(e);if(a&&e.startsWith(`${o}:`))return void a.lines.push(e.replace(`${o}:`,o));let s=x(e),c=a?i.length===1?d:[...d,...f]:[`conversation`];if(!s||!c.includes(s.kind))throw new t(`badMarker`,r+n+1);a?.lines[a.lines.length-1]===``&&a.lines.pop(),i.push(s)}),i}function x(e){let[,t=``,n=`{}`]=u.exec(e)??[];try{return{kind:t,facts:JSON.parse(n),lines:[]}}catch{return null}}export{g as isMarkdownFile,_ as parseMarkdownFile,p as writeMarkdownFile};