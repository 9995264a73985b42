// State of a dialog that creates something or changes what there is. A change sends the changed fields alone; what
// somebody else saved meanwhile stays, and a field that both changed is chosen by a person.
import type { AnyProcedure } from '@contract/procedure.ts';
import { computed, type Reactive, reactive, ref, shallowRef } from 'vue';
import { call } from '@/shared/api/call.ts';
import { type Choices, type Conflict, changedInput, changedPaths, merge, theirsOf } from './changes.ts';
import { copy, setAt } from './paths.ts';
import { sendOnTop } from './send-on-top.ts';
import { type InputForm, useInputForm } from './use-input-form.ts';

type Values = Record<string, unknown>;
type Existing<V> = V & { id: string; updatedAt: string };

export interface EditFormOptions<V extends Values> {
  create: AnyProcedure;
  update: AnyProcedure;
  /** What is changed; null: something new. */
  existing: Existing<V> | null;
  /** What the fields begin with where it is new. */
  initial: V;
  /** Inputs of a new one that are no fields. */
  fixed?: Values;
  /** The fields as they are sent: without blanks around a name, in one order. */
  tidy?: (fields: V) => V;
  /** Reads what is changed again; undefined: it is gone. */
  read: (id: string) => Promise<Existing<V> | undefined>;
  nameOf: (path: string) => string;
  textOf?: (path: string, value: unknown) => string | undefined;
  saved: () => void;
}

export interface EditForm<V extends Values> extends InputForm {
  draft: Reactive<V>;
}

export function useEditForm<V extends Values>(options: EditFormOptions<V>): EditForm<V> {
  const { existing, initial, tidy = (fields) => fields } = options;
  const procedure = existing ? options.update : options.create;
  const paths = Object.keys(initial);
  const fieldsOf = (values: Values) => tidy(Object.fromEntries(paths.map((path) => [path, copy(values[path])])) as V);
  const base = shallowRef<Values>(fieldsOf(existing ?? initial));
  const expectedUpdatedAt = ref(existing?.updatedAt);
  const draft = reactive(copy(base.value)) as Reactive<V>;
  const edits = computed<Values>(() => fieldsOf(draft as Values));
  const conflicts = ref<readonly Conflict[]>([]);

  const form = useInputForm({
    procedure,
    // Fields of what is changed; which of the two procedures takes them is known here only.
    paths: paths as never,
    input: () => {
      if (!existing) return { ...options.fixed, ...edits.value };
      const changed = changedInput(base.value, edits.value, paths, []);
      return { id: existing.id, ...changed, expectedUpdatedAt: expectedUpdatedAt.value };
    },
    send: async () => {
      await sendOnTop(send, rebase);
      options.saved();
    },
  });

  async function send(): Promise<void> {
    const unchanged = existing && changedPaths(base.value, edits.value, paths).length === 0;
    if (!unchanged) await call(procedure, form.input.value as never);
  }

  async function rebase(): Promise<readonly Conflict[] | null> {
    const theirs = await options.read(existing!.id);
    if (!theirs) return null;
    const now = fieldsOf(theirs);
    const { merged, conflicts: both } = merge(base.value, edits.value, now, paths);
    base.value = now;
    expectedUpdatedAt.value = theirs.updatedAt;
    Object.assign(draft, merged);
    conflicts.value = both;
    return both;
  }

  async function resolve(choices: Choices): Promise<void> {
    for (const { path, theirs } of theirsOf(conflicts.value, choices)) setAt(draft as Values, path, copy(theirs));
    conflicts.value = [];
    await form.run();
  }

  const { nameOf, textOf = () => undefined } = options;
  return { ...form, draft, conflict: { list: conflicts, nameOf, textOf, resolve } };
}
