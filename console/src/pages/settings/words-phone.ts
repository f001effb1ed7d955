import { dictionary } from "../../lib/language";

/** Installing the console, and signing in on a phone. */
export const phoneWords = dictionary(
  {
    title: "Install as an app",
    install: "Install",
    offered: "Toolyard opens in a window of its own, and on a phone from the home screen.",
    installed: "Installed: this window is the app.",
    insecure:
      "Browsers install apps only over HTTPS or on the server's own machine, and this address is plain " +
      "HTTP. Start the server with a certificate that this device trusts, then open its HTTPS address.",
    refused:
      "This browser cannot install the app: it does not trust the server's certificate, or this is a " +
      "private window. Import the certificate on this device, or use one that it already trusts.",
    ios: "In Safari, tap Share, then “Add to Home Screen”.",
    byHand:
      "Open the browser's menu and choose “Install”, “Add to Home screen” or “Add to Dock”. If it has " +
      "none of these, use another browser.",
    guide: "How to set up HTTPS:",
    signIn: "Sign in on a phone",
    scan: "Scan this code with the camera of the phone. It signs in one browser, once.",
    code: "QR code that signs a phone in",
    as: "Permissions on the phone",
    sameKey: "The same as here",
    validFor: (time: string) => `Valid for ${time}`,
    expired: "The code has expired.",
    newCode: "New code",
    link: "Link",
    noPhone: "Other devices cannot reach this server",
    noPhoneText:
      "It accepts connections from its own machine only. Start it as below, or set public_url if a proxy is in front of it.",
    here: "For another browser on this machine, open this link. It signs in once.",
    done: "Done",
  },
  {
    title: "安装为应用",
    install: "安装",
    offered: "安装后，Toolyard 会在独立窗口中打开；在手机上可以从主屏幕打开。",
    installed: "已安装：当前窗口就是应用。",
    insecure:
      "浏览器只允许通过 HTTPS 或在服务器本机上安装应用，而当前地址是普通 HTTP。请用此设备信任的证书启动服务器，再打开它的 HTTPS 地址。",
    refused:
      "此浏览器无法安装应用：它不信任服务器的证书，或者这是无痕窗口。请在此设备上导入证书，或改用设备已经信任的证书。",
    ios: "在 Safari 中点击“共享”，然后选择“添加到主屏幕”。",
    byHand: "打开浏览器菜单，选择“安装”“添加到主屏幕”或“添加到程序坞”。如果都没有，请换一个浏览器。",
    guide: "如何设置 HTTPS：",
    signIn: "在手机上登录",
    scan: "用手机相机扫描此二维码。它只能让一个浏览器登录一次。",
    code: "用于在手机上登录的二维码",
    as: "手机上的权限",
    sameKey: "与这里相同",
    validFor: (time: string) => `有效时间：${time}`,
    expired: "二维码已过期。",
    newCode: "生成新的二维码",
    link: "链接",
    noPhone: "其他设备无法访问此服务器",
    noPhoneText: "它只接受本机的连接。请按下面的方式启动；如果前面有代理，请设置 public_url。",
    here: "要在本机的其他浏览器中登录，请打开此链接。它只能使用一次。",
    done: "完成",
  },
);
