<<<<<<<< HEAD:src/toolyard/web/console/assets/scope-DIgVUCfE.js
import{Gt as e}from"./common-BTyaWCuw.js";var t=e({chat:`chat`,tools:`tools`,approve:`approvals`,admin:`full access`},{chat:`对话`,tools:`工具`,approve:`审批`,admin:`完全访问`});function n(e){return t()[e]??e}export{n as t};
========
import{zt as e}from"./common-Du9itihu.js";var t=e({chat:`chat`,tools:`tools`,approve:`approvals`,admin:`full access`},{chat:`对话`,tools:`工具`,approve:`审批`,admin:`完全访问`});function n(e){return t()[e]??e}export{n as t};
>>>>>>>> h-pagefix:src/toolyard/web/console/assets/scope-CkBmSOJ_.js
