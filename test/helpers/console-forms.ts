// Walks a form of the Web UI with bad input: what is typed is either taken and shown as text, or refused at its field.
import type { Locator, Page } from 'playwright-core';
import { messages, sourceFiles } from './console-sources.ts';
import { eventually } from './eventually.ts';

/** Text in both directions, beyond the first plane of Unicode, and as a page would run it. */
export const HOSTILE = 'مرحبا 🎉 "><img src=x onerror=reportFault(1)>{{ 7 * 7 }}';

export interface FormCase {
  /** Source of the form, below console/src. */
  file: string;
  /** Opens it: the element with its fields and its button. */
  open: (page: Page) => Promise<Locator>;
  /** Message of the button that sends it. */
  submit: string;
  /** Message of each field that is typed into, with what it may hold; undefined: as it stands. */
  fields: Readonly<Record<string, Field>>;
  /** Message of the button of a question that comes before it is sent. */
  confirm?: string;
  /** The field that refuses what is there already. */
  unique?: string;
  /** A dialog is gone once it was taken; a page's form stays and has nothing left to save. Default false. */
  stays?: boolean;
}

export interface Field {
  /** What is taken, another one each time. Without it: what the field holds. */
  good?: (serial: number) => string;
  /** May be left empty. */
  optional?: true;
  /** Takes any text and shows it. */
  anyText?: true;
  /** What it takes is shown later only. */
  unseen?: true;
  /** The longest or largest it takes. */
  longest?: (serial: number) => string;
  /** One more than that. */
  tooLong?: string;
}

export type Kind = 'empty' | 'hostile' | 'longest' | 'one too many';
export const KINDS: readonly Kind[] = ['empty', 'hostile', 'longest', 'one too many'];

const words = messages('en');
/** The English words of a message. */
export function word(key: string): string {
  const text = words.get(key);
  if (text === undefined) throw new Error(`there is no message ${key}`);
  return text;
}

/** Sources that have a form of their own. */
export function filesWithForms(): string[] {
  const shared = ['FormDialog', 'SettingsForm', 'ConfirmImpact', 'ConfirmCall', 'DangerSection'].map(
    (name) => `/${name}.vue`,
  );
  return sourceFiles()
    .filter(({ path, text }) => path.endsWith('.vue') && /<(form|FormDialog|SettingsForm)\b|type-to-confirm/.test(text))
    .map(({ path }) => path.slice('src/'.length))
    .filter((path) => !shared.some((end) => path.endsWith(end)))
    .sort();
}

let serial = 0;

/** What one kind of input holds for a field, and whether it has to be refused; null: the field is not tried so. */
function inputOf(field: Field, kind: Kind): { text: string; refused: boolean } | null {
  if (kind === 'empty') return { text: '', refused: !field.optional };
  if (kind === 'hostile') return { text: HOSTILE, refused: !field.anyText };
  if (kind === 'longest') return field.longest ? { text: field.longest(serial), refused: false } : null;
  return field.tooLong === undefined ? null : { text: field.tooLong, refused: true };
}

const control = (box: Locator, key: string) => box.getByLabel(word(key), { exact: true });

/** Types a text; a long one at once, because keys would take minutes. */
async function type(field: Locator, text: string): Promise<void> {
  if (text.length < 10_000) return field.fill(text);
  await field.evaluate((element, value) => {
    const typed = element as unknown as { value: string; dispatchEvent(event: Event): void };
    typed.value = value;
    typed.dispatchEvent(new Event('input', { bubbles: true }));
  }, text);
}

interface Outcome {
  taken: boolean;
  /** The button cannot be pressed. */
  shut: boolean;
  /** What each field says that refuses. */
  refused: Map<string, string>;
}

async function refusedBy(box: Locator, form: FormCase): Promise<Map<string, string>> {
  const refused = new Map<string, string>();
  // Asked again and again while nothing refuses yet, which one look tells.
  const all = await box.locator('.field__error').allTextContents();
  if (all.every((text) => text.trim() === '')) return refused;
  for (const key of Object.keys(form.fields)) {
    const said = control(box, key).locator('xpath=ancestor::div[contains(@class, "field")]').locator('.field__error');
    const texts = await said.allTextContents();
    const text = texts.join(' ').trim();
    if (text !== '') refused.set(key, text);
  }
  return refused;
}

/** Sends the form and waits until it was taken, or says what is wrong. */
async function send(box: Locator, form: FormCase): Promise<Outcome> {
  const button = box.getByRole('button', { name: word(form.submit), exact: true });
  const page = box.page();
  const url = page.url();
  if (await button.isDisabled()) {
    const refused = await refusedBy(box, form);
    if (refused.size === 0) return { taken: form.stays === true, shut: true, refused };
  }
  // A button may be shut by what was found while one reached for it.
  await button.click({ timeout: 5000 }).catch(() => undefined);
  return eventually(
    async (): Promise<Outcome | undefined> => {
      if (form.confirm) {
        const confirm = page.getByRole('button', { name: word(form.confirm), exact: true });
        if ((await confirm.count()) > 0) await confirm.click({ timeout: 1000 }).catch(() => undefined);
        if (page.url() !== url) return { taken: true, shut: false, refused: new Map() };
      }
      if (!(await box.isVisible())) return { taken: true, shut: false, refused: new Map() };
      if ((await box.locator('.is-loading').count()) > 0) return undefined;
      const note = box.locator('.error-note');
      if ((await note.count()) > 0) throw new Error(`no field tells it: ${await note.first().textContent()}`);
      const refused = await refusedBy(box, form);
      if (refused.size > 0) return { taken: false, shut: false, refused };
      return form.stays && (await button.isDisabled()) ? { taken: true, shut: true, refused } : undefined;
    },
    { what: `an outcome of ${form.file}` },
  );
}

/** Tries one kind of input in every field at once; answers what is wrong with how the form takes it. */
export async function tryKind(page: Page, box: Locator, form: FormCase, kind: Kind): Promise<string[]> {
  serial++;
  const faults: string[] = [];
  const fields = Object.entries(form.fields);
  const before = new Map<string, string>();
  for (const [key] of fields) before.set(key, await control(box, key).inputValue());
  const goodOf = (key: string) => form.fields[key]!.good?.(serial) ?? before.get(key)!;
  const tried = new Map(
    fields.flatMap(([key, field]) => {
      const input = inputOf(field, kind);
      return input ? [[key, input] as const] : [];
    }),
  );
  if (tried.size === 0) return [];
  for (const [key] of fields) await type(control(box, key), tried.get(key)?.text ?? goodOf(key));

  const wanted = new Set([...tried].filter(([, { refused }]) => refused).map(([key]) => key));
  const seen = new Set<string>();
  // The server sees a form only once everything that is refused before it is sent has been mended.
  for (let round = 0; ; round++) {
    const { taken, shut, refused } = await send(box, form);
    if (taken) break;
    if (shut) {
      if (kind !== 'empty') faults.push('the button cannot be pressed');
      return faults.map((fault) => `${form.file}, ${kind}: ${fault}`);
    }
    if (round === 0 && !(await focusIsWrong(page))) faults.push('the focus is not on what has to be mended');
    for (const [key, text] of refused) {
      if (!wanted.has(key)) faults.push(`${word(key)} refuses what it should take: ${text}`);
      seen.add(key);
      const field = control(box, key);
      if ((await field.getAttribute('aria-invalid')) !== 'true') faults.push(`${word(key)} is not marked as wrong`);
      await type(field, goodOf(key));
    }
    if (round === fields.length) {
      faults.push(`it is never taken: ${[...refused].map(([key, text]) => `${word(key)}: ${text}`)}`);
      break;
    }
  }
  for (const key of wanted) if (!seen.has(key)) faults.push(`${word(key)} takes what it should refuse`);
  for (const [key, { text, refused }] of tried) {
    if (refused || kind !== 'hostile' || form.fields[key]!.unseen) continue;
    const shown = form.stays
      ? (await control(box, key).inputValue()).includes(text)
      : await page
          .getByText(text)
          .first()
          .waitFor()
          .then(
            () => true,
            () => false,
          );
    if (!shown) faults.push(`${word(key)} is not shown as it was typed`);
  }
  return faults.map((fault) => `${form.file}, ${kind}: ${fault}`);
}

/** Sends the same twice; answers what is wrong with how the second is refused. */
export async function tryTaken(page: Page, form: FormCase): Promise<string[]> {
  serial++;
  const values = Object.entries(form.fields).map(([key, field]) => [key, field.good!(serial)] as const);
  for (const again of [false, true]) {
    const box = await form.open(page);
    for (const [key, text] of values) await type(control(box, key), text);
    const { taken, refused } = await send(box, form);
    if (taken === again || refused.has(form.unique!) !== again)
      return [`${form.file}: ${again ? 'takes a second one' : 'refuses the first one'} ${[...refused]}`];
  }
  return [];
}

async function focusIsWrong(page: Page): Promise<boolean> {
  return page.evaluate<boolean>(`document.activeElement.closest('.is-wrong') !== null`);
}
