/** Drawn signs, one stroke each, in the colour of the text beside them. Each has one meaning everywhere, which
 * stands in `style/signs.ts`. */
const SIGNS = {
  chat: "M4 5h16v11H9l-5 4z",
  tools: "M14 6a4 4 0 0 0-5 5l-6 6 3 3 6-6a4 4 0 0 0 5-5l-3 3-3-3z",
  activity: "M3 12h4l3-8 4 16 3-8h4",
  tasks: "M4 6l2 2 3-3M4 13l2 2 3-3M4 20l2 1M12 7h8M12 14h8M12 20h8",
  schedule: "M4 6h16v14H4zM4 10h16M8 3v4M16 3v4",
  approvals: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6zM8.5 12l2.5 2.5 4.5-5",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4M16 7h.01",
  status: "M5 19V9M12 19V5M19 19v-6",
  more: "M5 11.4v1.2M12 11.4v1.2M19 11.4v1.2M4.4 12h1.2M11.4 12h1.2M18.4 12h1.2",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13M20 20l-4.8-4.8",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M4 12l5 5L20 6",
  close: "M5 5l14 14M19 5L5 19",
  stop: "M6 6h12v12H6z",
  play: "M7 4l13 8-13 8z",
  pause: "M8 5v14M16 5v14",
  retry: "M20 11a8 8 0 1 0-2 6M20 5v6h-6",
  reload: "M4 11a8 8 0 0 1 14-4l2 2M20 4v5h-5M20 13a8 8 0 0 1-14 4l-2-2M4 20v-5h5",
  resume: "M5 5v14M10 5l10 7-10 7z",
  undo: "M9 7L4 12l5 5M4 12h10a6 6 0 0 1 6 6v1",
  down: "M6 9l6 6 6-6",
  up: "M6 15l6-6 6 6",
  right: "M9 6l6 6-6 6",
  left: "M15 6l-6 6 6 6",
  plus: "M12 5v14M5 12h14",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  edit: "M4 20l1-5L16 4l4 4L9 19z",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  upload: "M12 16V5M7 9l5-5 5 5M4 20h16",
  pin: "M9 4h6l-1 7 4 3v2H6v-2l4-3zM12 16v5",
  send: "M4 12l16-8-6 16-3-6z",
  attach: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.5 3.5 0 0 1 5 5l-8.5 8.5a2 2 0 0 1-3-3L14 7",
  star: "M12 4l2.4 5.2 5.6.6-4.2 3.8 1.2 5.6L12 16.3 7 19.2l1.2-5.6L4 9.8l5.6-.6z",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
  error: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v6M12 16h.01",
  info: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 11v6M12 7.5h.01",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.5 1.5M17.5 17.5L19 19M5 19l1.5-1.5M17.5 6.5L19 5",
  moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  key: "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8M11 12.2L20 3M16.5 6.5L19.5 9.5",
  thinking: "M12 4a6 6 0 0 0-3.5 11v3h7v-3A6 6 0 0 0 12 4M10 21h4",
  panel: "M3 5h18v14H3zM9.5 5v14M6 9h.5M6 12h.5",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  folder: "M3 6h6l2 2h10v11H3z",
  link: "M10 14a4 4 0 0 0 6 0l3-3a4 4 0 0 0-6-6l-1 1M14 10a4 4 0 0 0-6 0l-3 3a4 4 0 0 0 6 6l1-1",
  plug: "M9 3v5M15 3v5M6 8h12v3a6 6 0 0 1-12 0zM12 17v4",
  expand: "M9 4H4v5M15 4h5v5M9 20H4v-5M15 20h5v-5",
  wrap: "M4 6h16M4 12h13a3 3 0 0 1 0 6h-4M15 15l-2 3 2 3M4 18h5",
  picture: "M3 5h18v14H3zM3 16l5-5 4 4 3-3 6 5M15.5 9h.01",
  filter: "M4 5h16l-6 8v5l-4 2v-7z",
  book: "M4 5c3-1 6-1 8 1 2-2 5-2 8-1v13c-3-1-6-1-8 1-2-2-5-2-8-1zM12 6v13",
  external: "M14 4h6v6M20 4l-9 9M18 14v6H4V6h6",
  sound: "M4 9v6h4l5 4V5L8 9zM16.5 9a4 4 0 0 1 0 6M19 6.5a8 8 0 0 1 0 11",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l2 2H4zM10 21h4",
  prompts: "M4 4h16v16H4zM8 9h8M8 13h8M8 17h4",
  exit: "M10 4H4v16h6M15 8l4 4-4 4M19 12H9",
  power: "M12 3v9M7 6a8 8 0 1 0 10 0",
  clock: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5l3 3",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7S2 12 2 12M12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6",
  duplicate: "M8 8h12v12H8zM4 16V4h12M14 11v6M11 14h6",
  phone: "M7 2.5h10v19H7zM11 18.5h2",
  assistant: "M5 9h14v11H5zM12 9V5M12 4h.01M9.5 13.5v1M14.5 13.5v1M2 13v3M22 13v3",
  request: "M11 20H4V4h14v6M8 8h6M8 12h3M17 13a3 3 0 1 0 0 6 3 3 0 0 0 0-6M19.2 18.2L22 21",
  text: "M5 7V4h14v3M12 4v16M9 20h6",
  fit: "M4 5v14M20 5v14M7.5 12h9M10 9l-3 3 3 3M14 9l3 3-3 3",
  reset: "M4 5v14M20 12H8M13 7l-5 5 5 5",
  test: "M9 3h6M10 3v6L5 19.5A1 1 0 0 0 6 21h12a1 1 0 0 0 1-1.5L14 9V3M8 14h8",
  doctor: "M9.5 4h5v5.5H20v5h-5.5V20h-5v-5.5H4v-5h5.5z",
  audit: "M9 5H5v16h14V5h-4M9 3h6v4H9zM9 12h6M9 16h4",
  terminal: "M3 5h18v14H3zM7 9l3 3-3 3M12.5 15H17",
  code: "M8 6l-6 6 6 6M16 6l6 6-6 6M13.5 5l-3 14",
  history: "M4 5v5h5M4.5 9.5A8.5 8.5 0 1 1 3.6 13M12 8v4.5l3 2",
  example: "M4 5h16v14H4zM8 10h8M8 14h5",
  usage: "M4.5 18a9 9 0 1 1 15 0M12 14l4-5",
  diagram: "M3 4h7v6H3zM14 14h7v6h-7zM6.5 10v7H14",
  network: "M7 18a4 4 0 0 1-.5-8A6 6 0 0 1 18 9.5a4.3 4.3 0 0 1 0 8.5z",
  device: "M3 5h18v11H3zM8 20h8M12 16v4",
  logs: "M4 5h3M10 5h10M4 10h3M10 10h7M4 15h3M10 15h10M4 20h3M10 20h5",
  chosen: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 9.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5",
  keyboard: "M3 6h18v12H3zM7 10h.01M11 10h.01M15 10h.01M8 14h8",
} as const;
export type Sign = keyof typeof SIGNS;
export const SIGN_NAMES = Object.keys(SIGNS) as readonly Sign[];

export function Icon({ sign, size = 18 }: { sign: Sign; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.8"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
    >
      <path d={SIGNS[sign]} />
    </svg>
  );
}
