// State of a form over one resource: what the server has, what the person changed, and how both come together on save.
//
//   clean ── edit ──> dirty ── save ──> saving ── ok ──> clean
//                       ^                  │ 409 UPDATED_AT_MISMATCH: read again, put my edits on top
//                       └── conflict ──────┤   nothing changed by both: save again
//                           (person chooses)└  else: ask field by field
import type { AnyProcedure } from '@contract/procedure.ts';
import { type ComputedRef, computed, type Ref, reactive, ref, shallowRef, watch } from 'vue';
import { call } from '@/shared/api/call.ts';
import { asCallError, type CallError } from '@/shared/api/call-error.ts';
import { type Action, useAction } from '@/shared/api/use-action.ts';
import { type Choices, type Conflict, changedInput, changedPaths, merge, theirsOf, type Whole } from './changes.ts';
import { copy, setAt, valueAt } from './paths.ts';
import { problemText } from './problem-text.ts';
import { dotted, type Problem, tellAt } from './problems.ts';
import { issuesOf, type JsonSchema, schemaAt } from './schema.ts';
import { sendOnTop } from './send-on-top.ts';

type Values = Record<string, unknown>;

export interface SettingsFormOptions {
  procedure: AnyProcedure;
  /** Dotted paths of the fields, the same in the resource and in the input. */
  paths: readonly string[];
  /** The resource as last answered; undefined until then. */
  value: () => Values | undefined;
  /** Inputs that are no fields: { id }. */
  fixed?: () => Values;
  /** What the server replaces as a whole. */
  whole?: Whole;
  /** Reads the resource again, for a conflict. */
  read: () => Promise<Values>;
  /** Takes the resource out of the procedure's answer; the answer itself by default. */
  saved?: (answer: unknown) => Values;
  /** Name of what is saved, for the change tracker. */
  subject?: () => string;
}

export interface SettingsFormState {
  draft: Values;
  get: (path: string) => unknown;
  set: (path: string, value: unknown) => void;
  schema: (path: string) => JsonSchema | undefined;
  dirty: ComputedRef<boolean>;
  changed: ComputedRef<readonly string[]>;
  /** What is wrong with a field, or with a part of what it holds: found here, or answered by the server. */
  problem: (path: string) => string;
  valid: ComputedRef<boolean>;
  /** What went wrong and no field tells. */
  error: ComputedRef<CallError | null>;
  input: ComputedRef<Values>;
  conflicts: Ref<readonly Conflict[]>;
  save: Action<[], Values>;
  reset: () => void;
  /** Ends a conflict. */
  resolve: (choices: Choices) => Promise<void>;
}

export function useSettingsForm(options: SettingsFormOptions): SettingsFormState {
  const { procedure, paths, whole = [] } = options;
  const base = shallowRef<Values>({});
  const draft = reactive<Values>({});
  const conflicts = ref<readonly Conflict[]>([]);
  const answered = shallowRef<CallError | null>(null);
  const schema = (path: string) => schemaAt(procedure.input as JsonSchema, path);

  function take(values: Values, edits: Values = values): void {
    base.value = copy(values);
    for (const key of Object.keys(draft)) delete draft[key];
    Object.assign(draft, copy(edits));
  }

  const changed = computed(() => changedPaths(base.value, draft, paths));
  const dirty = computed(() => changed.value.length > 0);
  // What arrives while nobody edits is shown; what arrives while somebody does waits for the save.
  watch(options.value, (values) => values && !dirty.value && take(values), { immediate: true });

  const found = computed<Problem[]>(() =>
    changed.value.flatMap((path) => {
      const field = schema(path);
      const issues = field ? issuesOf(field, valueAt(draft, path)) : [];
      return issues.map((why) => ({ path: why.path ? `${path}.${dotted(why.path)}` : path, why }));
    }),
  );
  const answer = computed(() => tellAt(answered.value, paths));
  const input = computed<Values>(() => ({
    ...(options.fixed?.() ?? {}),
    ...changedInput(base.value, draft, paths, whole),
    ...(schema('expectedUpdatedAt') && base.value.updatedAt ? { expectedUpdatedAt: base.value.updatedAt } : {}),
  }));

  async function send(): Promise<Values> {
    const subject = options.subject?.();
    const answer = await call(procedure, input.value as never, subject ? { subject } : {});
    return (options.saved ?? ((given) => given as Values))(answer);
  }

  async function rebase(): Promise<readonly Conflict[]> {
    const theirs = await options.read();
    const { merged, conflicts: both } = merge(base.value, draft, theirs, paths);
    take(theirs, merged);
    conflicts.value = both;
    return both;
  }

  const save = useAction(async (): Promise<Values> => {
    answered.value = null;
    try {
      const saved = await sendOnTop(send, rebase);
      take(saved);
      return saved;
    } catch (thrown) {
      const error = asCallError(thrown);
      if (error.code !== 'ABORTED') answered.value = error;
      throw error;
    }
  });

  return {
    draft,
    get: (path) => valueAt(draft, path),
    set: (path, value) => {
      setAt(draft, path, value);
      // An answer is about what was sent.
      answered.value = null;
      save.error.value = null;
    },
    schema,
    dirty,
    changed,
    problem: (path) => problemText(path, [...found.value, ...answer.value.told], valueAt(draft, path)),
    valid: computed(() => found.value.length === 0),
    error: computed(() => (answered.value ? answer.value.rest : save.error.value)),
    input,
    conflicts,
    save,
    reset: () => {
      answered.value = null;
      save.error.value = null;
      take(options.value() ?? base.value);
    },
    resolve: async (choices) => {
      for (const { path, theirs } of theirsOf(conflicts.value, choices)) setAt(draft, path, copy(theirs ?? null));
      conflicts.value = [];
      if (dirty.value) await save.run();
    },
  };
}
