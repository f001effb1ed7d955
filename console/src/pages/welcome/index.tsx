/** The first steps: a model, one question that needs a tool, the language and the place. Any of them can be skipped. */
import "./style.css";
import "../providers/style.css";
import { useEffect } from "preact/hooks";
import type { SettingsDetail, Status } from "toolyard-client";
import { api, hasScope } from "../../lib/api";
import { dropDrafts } from "../../lib/drafts";
import { useResource } from "../../lib/resource";
import { setQuery, queryParam, navigate } from "../../lib/router";
import { Button } from "../../ui/button";
import { Icon, type Sign } from "../../ui/icon";
import { Empty, Fault, Loading } from "../../ui/state";
import { listProviders } from "../providers/provider";
import { ModelStep } from "./model-step";
import { PlaceStep } from "./place-step";
import { keepTry, TryStep } from "./try-step";
import { dropKept, keep, placeOf, readKept } from "./types";
import { words } from "./words";

const STEPS = ["model", "try", "place"] as const;
type Step = (typeof STEPS)[number];
const SIGNS: Record<Step, Sign> = { model: "plug", try: "play", place: "globe" };

export default function Welcome() {
  const t = words();
  const status = useResource<Status>(hasScope("admin") ? "/v1/status" : null);
  const settings = useResource<SettingsDetail>(hasScope("admin") ? "/v1/settings" : null);
  const place = status.value ? placeOf(status.value) : "";
  const kept = place ? readKept(place) : null;
  const at = Math.min(STEPS.length, Math.max(1, Number(queryParam("step")) || kept?.at || 1));
  const step = STEPS[at - 1]!;
  useEffect(() => {
    if (place) keep({ ...readKept(place), at });
  }, [at, place]);
  if (!hasScope("admin"))
    return (
      <div class="page">
        <Empty sign="key" title={t.onlyOwner} action={<Button onClick={() => navigate("/chat")}>{t.toChat}</Button>}>
          {t.onlyOwnerText}
        </Empty>
      </div>
    );
  const isDone = (name: Step) =>
    kept?.done.includes(name) || (name === "model" && listProviders(settings.value?.settings ?? []).length > 0);
  const end = async () => {
    await api("/v1/setup/done", { method: "POST", body: {} });
    dropKept();
    dropDrafts("welcome.");
    keepTry(null);
    navigate("/chat");
  };
  const skip = () => (at < STEPS.length ? setQuery({ step: String(at + 1) }, false) : undefined);
  const next = () => {
    if (kept) keep({ ...kept, at, done: [...new Set([...kept.done, step])] });
    skip();
  };
  const back = at > 1 ? () => setQuery({ step: String(at - 1) }, false) : undefined;
  const fault = status.state === "fault" ? status : settings.state === "fault" ? settings : null;
  const given =
    status.value && settings.value
      ? { status: status.value, settings: settings.value.settings, next, skip, back }
      : null;
  return (
    <div class="page welcome">
      <div class="welcome-top">
        <img src="/console/icon.svg" width="40" height="40" alt="" />
        <h1 class="grow">{t.title}</h1>
        <Button kind="quiet" onClick={end}>
          {t.skipAll}
        </Button>
      </div>
      <ol class="welcome-steps" aria-label={t.step(at, STEPS.length)}>
        {STEPS.map((name, n) => (
          <li key={name} class={n + 1 === at ? "on" : isDone(name) ? "past" : ""}>
            <a href={`/welcome?step=${n + 1}`} aria-current={n + 1 === at ? "step" : undefined}>
              <i aria-hidden="true">
                {n + 1 !== at && isDone(name) ? <Icon sign="check" size={14} /> : n + 1 < at ? "–" : n + 1}
              </i>
              <span>
                {t[name]}
                {n + 1 < at && <span class="hush"> {isDone(name) ? t.stepDone : t.stepSkipped}</span>}
              </span>
            </a>
          </li>
        ))}
      </ol>
      <section class="card welcome-card" aria-label={t[step]} key={step}>
        <div class="welcome-title">
          <Icon sign={SIGNS[step]} size={22} />
          <div>
            <h2>{t[step]}</h2>
            <p class="quiet">{{ model: t.modelText, try: t.tryText, place: t.placeText }[step]}</p>
          </div>
        </div>
        {fault && <Fault error={fault.error} retry={fault.reload} />}
        {!fault && !given && <Loading rows={3} />}
        {given && step === "model" && <ModelStep {...given} onSaved={settings.reload} />}
        {given && step === "try" && <TryStep {...given} />}
        {given && step === "place" && <PlaceStep {...given} end={end} />}
      </section>
    </div>
  );
}
