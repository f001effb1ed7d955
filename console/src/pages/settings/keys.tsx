/** Keys and what they may do. A new key is shown once and never again. */
import { useSignal } from "@preact/signals";
import type { KeySummary } from "toolyard-client";
import { api } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { queryParam, setQuery } from "../../lib/router";
import { scopeWord } from "../../lib/scope";
import { Button, CopyButton } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { Select, TextField } from "../../ui/field";
import { Empty, Fault, Loading, Notice } from "../../ui/state";
import { Ago } from "../../ui/time";
import { PhoneSignIn } from "./phone-sign-in";
import { words } from "./words";
import { phoneWords } from "./words-phone";

const SCOPES = ["chat", "tools", "approve", "node", "admin"] as const;
const OFFERS = ["auto", "native", "text", "none"] as const;

export function Keys() {
  const t = words();
  const keys = useResource<{ data: KeySummary[] }>("/v1/keys");
  const making = queryParam("new") !== "";
  const signingIn = useSignal(false);
  const ending = useSignal<KeySummary | null>(null);
  if (keys.state === "fault" && !keys.value) return <Fault error={keys.error} retry={keys.reload} />;
  if (!keys.value) return <Loading />;
  const others = keys.value.data.filter((key) => key.id !== "owner");
  return (
    <>
      <div class="row spread">
        <p class="quiet settings-intro">{t.keysText}</p>
        <Button sign="phone" onClick={() => (signingIn.value = true)}>
          {phoneWords().signIn}
        </Button>
        <Button kind="primary" sign="plus" onClick={() => setQuery({ new: "1" }, false)}>
          {t.newKey}
        </Button>
      </div>
      {!others.length && (
        <Empty sign="key" title={t.noKeys}>
          {t.noKeysText}
        </Empty>
      )}
      <ul class="settings-keys">
        {others.map((key) => (
          <li key={key.id} class="card row" data-row tabIndex={0}>
            <div class="grow">
              <strong>{key.name}</strong>
              <div class="faint">
                {t.created} <Ago at={key.created} />
              </div>
            </div>
            <span class="settings-key-scopes">
              {key.scopes.map((scope) => (
                <Chip key={scope} tone={scope === "admin" ? "warn" : "info"}>
                  {scopeWord(scope)}
                </Chip>
              ))}
              {key.offer && (
                <Chip>
                  {t.keyOffer}: {key.offer}
                </Chip>
              )}
            </span>
            <Button kind="danger" sign="trash" onClick={() => (ending.value = key)}>
              {t.revoke}
            </Button>
          </li>
        ))}
      </ul>
      {making && (
        <NewKey
          onClose={() => {
            setQuery({ new: null });
            keys.reload();
          }}
        />
      )}
      {signingIn.value && <PhoneSignIn keys={others} onClose={() => (signingIn.value = false)} />}
      {ending.value && (
        <Dialog
          title={t.revoke}
          onClose={() => (ending.value = null)}
          footer={
            <>
              <Button onClick={() => (ending.value = null)}>{t.cancel}</Button>
              <Button
                kind="danger"
                onClick={async () => {
                  await api(`/v1/keys/${ending.value!.id}`, { method: "DELETE" });
                  ending.value = null;
                  keys.reload();
                }}
              >
                {t.revoke}
              </Button>
            </>
          }
        >
          <p>{t.revokeAsk(ending.value.name)}</p>
        </Dialog>
      )}
    </>
  );
}

function NewKey({ onClose }: { onClose: () => void }) {
  const t = words();
  const name = useSignal("");
  const scopes = useSignal<readonly string[]>(["chat"]);
  const offer = useSignal("");
  const tried = useSignal(false);
  const made = useSignal("");
  const about = { chat: t.scopeChat, tools: t.scopeTools, approve: t.scopeApprove, node: t.scopeNode, admin: t.scopeAdmin };
  const make = async () => {
    tried.value = true;
    if (!name.value.trim() || !scopes.value.length) return;
    made.value = (
      await api<{ key: string }>("/v1/keys", {
        body: { name: name.value.trim(), scopes: scopes.value, offer: offer.value || null },
      })
    ).key;
  };
  if (made.value) {
    return (
      <Dialog
        title={t.newKey}
        onClose={onClose}
        footer={
          <Button kind="primary" onClick={onClose}>
            {t.done}
          </Button>
        }
      >
        <Notice tone="warn">{t.copyNow}</Notice>
        <div class="row settings-new-key">
          <code class="grow">{made.value}</code>
          <CopyButton text={made.value} />
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog
      title={t.newKey}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button kind="primary" onClick={make}>
            {t.make}
          </Button>
        </>
      }
    >
      <TextField
        label={t.keyName}
        help={t.keyNameHelp}
        required
        value={name.value}
        onInput={(value) => (name.value = value)}
        problem={tried.value && !name.value.trim() ? t.needName : ""}
      />
      <fieldset class="settings-scopes">
        <legend>{t.scopes}</legend>
        {SCOPES.map((scope) => (
          <label key={scope}>
            <input
              type="checkbox"
              checked={scopes.value.includes(scope)}
              onChange={(event) =>
                (scopes.value = event.currentTarget.checked
                  ? [...scopes.value, scope]
                  : scopes.value.filter((one) => one !== scope))
              }
            />
            <span>
              <code>{scope}</code> <span class="quiet">{about[scope]}</span>
            </span>
          </label>
        ))}
        {tried.value && !scopes.value.length && (
          <p class="problem" role="alert">
            {t.needScope}
          </p>
        )}
      </fieldset>
      <Select
        label={t.keyOffer}
        help={t.keyOfferHelp}
        value={offer.value}
        onInput={(value) => (offer.value = value)}
        options={[{ value: "", name: t.keyOfferUsual }, ...OFFERS.map((mode) => ({ value: mode, name: mode }))]}
      />
    </Dialog>
  );
}
