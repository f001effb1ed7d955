<<<<<<<< HEAD:src/toolyard/web/console/assets/scope-CGNzUn0u.js
import{Ft as e}from"./common-BuCTwFGi.js";var t=e({chat:`chat`,tools:`tools`,approve:`approvals`,admin:`full access`},{chat:`对话`,tools:`工具`,approve:`审批`,admin:`完全访问`});function n(e){return t()[e]??e}export{n as t};
========
import{Ft as e}from"./common-D0wg2IzW.js";var t=e({chat:`chat`,tools:`tools`,approve:`approvals`,admin:`full access`},{chat:`对话`,tools:`工具`,approve:`审批`,admin:`完全访问`});function n(e){return t()[e]??e}export{n as t};
>>>>>>>> h-backfix:src/toolyard/web/console/assets/scope-nUVdvV2T.js
