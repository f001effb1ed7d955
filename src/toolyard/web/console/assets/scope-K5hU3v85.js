<<<<<<<< HEAD:src/toolyard/web/console/assets/scope-K5hU3v85.js
import{Ht as e}from"./common-ClEzQWLJ.js";var t=e({chat:`chat`,tools:`tools`,approve:`approvals`,admin:`full access`},{chat:`对话`,tools:`工具`,approve:`审批`,admin:`完全访问`});function n(e){return t()[e]??e}export{n as t};
========
import{Ut as e}from"./common-BuXTfvAW.js";var t=e({chat:`chat`,tools:`tools`,approve:`approvals`,admin:`full access`},{chat:`对话`,tools:`工具`,approve:`审批`,admin:`完全访问`});function n(e){return t()[e]??e}export{n as t};
>>>>>>>> 44913094 (A model provider can be renamed in the console):src/toolyard/web/console/assets/scope-CFXt6_mq.js
