// State of a form over one resource: what the server has, what the person changed, and how both come together on save.
//
//   clean ── edit ──> dirty ── save ──> saving ── ok ──> clean
//                       ^                  │ 409 UPDATED_AT_MISMATCH: read again, put my edits on top
//                       └── conflict ──────┤   nothing changed by both: save again
//                           (person chooses)└  else: ask field by field
import type { AnyProcedure } from '@contract/procedure.ts';
import { type ComputedRef, computed, type Ref, reactive, ref, shallowRef, watch } from 'vue';
import { call } from '@/shared/api/call.ts';
import { asCallError, CallError } from '@/shared/api/call-error.ts';
import { type Action, useAction } from '@/shared/api/use-action.ts';
import { issueText } from '@/shared/error/error-text.ts';
import { type Conflict, changedInput, changedPaths, merge } from './changes.ts';
import { copy, setAt, valueAt } from './paths.ts';
import { issuesOf, type JsonSchema, schemaAt } from './schema.ts';

type Values = Record<string, unknown>;

export interface SettingsFormOptions {
  procedure: AnyProcedure;
  /** Dotted paths of the fields, the same in the resource and in the input. */
  paths: readonly string[];
  /** The resource as last answered; undefined until then. */
  value: () => Values | undefined;
  /** Inputs that are no fields: { id }. */
  fixed?: () => Values;
  /** Groups the server replaces as a whole. */
  whole?: readonly string[];
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
  /** What is wrong with a field: found here, or answered by the server. */
  problem: (path: string) => string;
  valid: ComputedRef<boolean>;
  input: ComputedRef<Values>;
  conflicts: Ref<readonly Conflict[]>;
  save: Action<[], Values>;
  reset: () => void;
  /** Ends a conflict: for each path, whose value is kept. */
  resolve: (choices: Readonly<Record<string, 'mine' | 'theirs'>>) => Promise<void>;
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

  const problems = computed(() => {
    const found: Record<string, string> = {};
    for (const path of changed.value) {
      const field = schema(path);
      const [issue] = field ? issuesOf(field, valueAt(draft, path)) : [];
      if (issue) found[path] = issueText(issue);
    }
    for (const issue of answered.value?.issues ?? []) {
      const path = paths.find((known) => issue.path === pointer(known) || issue.path.startsWith(`${pointer(known)}/`));
      if (path) found[path] ??= issueText(issue);
    }
    return found;
  });
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

  const save = useAction(async (): Promise<Values> => {
    answered.value = null;
    for (let attempt = 0; ; attempt++) {
      try {
        const saved = await send();
        take(saved);
        return saved;
      } catch (thrown) {
        const error = asCallError(thrown);
        if (error.code !== 'UPDATED_AT_MISMATCH' || attempt > 3) {
          answered.value = error;
          throw error;
        }
        const theirs = await options.read();
        const { merged, conflicts: both } = merge(base.value, draft, theirs, paths);
        take(theirs, merged);
        if (both.length > 0) {
          conflicts.value = both;
          throw new CallError('ABORTED', 'A person chooses.');
        }
      }
    }
  });

  return {
    draft,
    get: (path) => valueAt(draft, path),
    set: (path, value) => {
      setAt(draft, path, value);
      if (answered.value) answered.value = null;
    },
    schema,
    dirty,
    changed,
    problem: (path) => problems.value[path] ?? '',
    valid: computed(() => Object.keys(problems.value).length === 0),
    input,
    conflicts,
    save,
    reset: () => {
      answered.value = null;
      save.error.value = null;
      take(options.value() ?? base.value);
    },
    resolve: async (choices) => {
      for (const { path, theirs } of conflicts.value)
        if (choices[path] === 'theirs') setAt(draft, path, copy(theirs ?? null));
      conflicts.value = [];
      if (dirty.value) await save.run();
    },
  };
}

function pointer(path: string): string {
  return `/${path.replaceAll('.', '/')}`;
}
