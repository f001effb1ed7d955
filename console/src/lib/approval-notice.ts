/** A notice of the browser and a sound when something asks: off until a person turns them on by a button. They listen
 * whichever page is open, so this begins with the console and not with the page of approvals. */
import { signal } from "@preact/signals";
import { approvalLink } from "./approval-link";
import { subscribe } from "./events";
import { dictionary } from "./language";
import { showNotification } from "./notification";
import { toText } from "./text";

const words = dictionary(
  { title: (tool: string) => `${tool} needs your approval`, text: "Open Toolyard to answer." },
  { title: (tool: string) => `${tool} 需要你的批准`, text: "打开 Toolyard 进行处理。" },
);
const NOTICE = "toolyard.approvals.notice";
const SOUND = "toolyard.approvals.sound";
const canNotify = () => "Notification" in window && Notification.permission === "granted";

export const notices = signal(localStorage.getItem(NOTICE) === "on" && canNotify());
export const sounds = signal(localStorage.getItem(SOUND) === "on");
let audio: AudioContext | null = null;

/** Returns true if it worked: a browser may refuse. */
export async function setNotices(on: boolean): Promise<boolean> {
  const granted = on && "Notification" in window && (await Notification.requestPermission()) === "granted";
  notices.value = granted;
  localStorage.setItem(NOTICE, granted ? "on" : "off");
  return granted === on;
}

export function setSounds(on: boolean): void {
  sounds.value = on;
  localStorage.setItem(SOUND, on ? "on" : "off");
  if (on) chime();
}

export function watchApprovals(): void {
  subscribe(["approval.requested"], (event) => {
    if (event.type === "gap") return;
    if (sounds.value) chime();
    if (!notices.value || !document.hidden) return;
    const id = toText(event.data.id);
    showNotification(words().title(toText(event.data.tool)), words().text, id, approvalLink(id)).catch(
      () => (notices.value = false),
    );
  });
}

/** Two soft notes. A browser that has not been touched yet stays silent. */
function chime(): void {
  audio ??= new AudioContext();
  void audio.resume();
  for (const [at, pitch] of [
    [0, 660],
    [0.16, 880],
  ] as const) {
    const tone = audio.createOscillator();
    const volume = audio.createGain();
    const start = audio.currentTime + at;
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0.0001, start);
    volume.gain.exponentialRampToValueAtTime(0.15, start + 0.02);
    volume.gain.exponentialRampToValueAtTime(0.0001, start + 0.3);
    tone.connect(volume).connect(audio.destination);
    tone.start(start);
    tone.stop(start + 0.32);
  }
}
