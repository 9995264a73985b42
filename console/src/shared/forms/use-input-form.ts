// State of a form that sends one input at once: a dialog that creates something, a step of the first run. What the
// contract refuses is said before it is sent; what the server refuses is said at the field it names.
import type { AnyProcedure } from '@contract/procedure.ts';
import { type ComputedRef, computed, nextTick, type Ref, ref, useId, watch } from 'vue';
import type { CallError } from '@/shared/api/call-error.ts';
import { useAction } from '@/shared/api/use-action.ts';
import type { Choices, Conflict } from './changes.ts';
import type { FieldPath } from './field.ts';
import { valueAt } from './paths.ts';
import { focusProblem, problemText } from './problem-text.ts';
import { dotted, isAt, type Problem, tellAt } from './problems.ts';
import { issuesOf, type JsonSchema } from './schema.ts';

type Values = Record<string, unknown>;

export interface InputFormOptions<P extends AnyProcedure> {
  procedure: P;
  /** Dotted paths of the input that fields of the form hold. */
  paths: readonly FieldPath<P>[];
  input: () => Values;
  /** What comes before it is sent: another look, a question. Answers whether it is sent now; what it throws is told as its refusal. */
  before?: () => Promise<boolean>;
  /** Sends it. */
  send: () => Promise<unknown>;
  /** Words of the page's own for what is wrong with a field. */
  own?: () => Readonly<Record<string, string>>;
  /** What a person typed, where the input tells something else: half an address is none, the only cluster chooses itself. */
  typed?: () => unknown;
}

export interface InputForm {
  /** Id of the form's element, for a submit button outside of it. */
  id: string;
  procedure: AnyProcedure;
  input: ComputedRef<Values>;
  running: Ref<boolean>;
  /** Whether something was typed that was not sent. */
  dirty: ComputedRef<boolean>;
  /** What no field tells. */
  error: ComputedRef<CallError | null>;
  problem: (path: string) => string;
  /** Sends the input unless something is wrong with it, and never twice at a time. */
  run: () => Promise<void>;
  /** Where it changes what others may change meanwhile (useEditForm). */
  conflict?: FormConflict;
}

/** Fields that both changed, until a person chooses. */
export interface FormConflict {
  list: Ref<readonly Conflict[]>;
  nameOf: (path: string) => string;
  /** Words of a value that does not speak for itself; undefined: it does. */
  textOf: (path: string, value: unknown) => string | undefined;
  resolve: (choices: Choices) => Promise<void>;
}

export function useInputForm<P extends AnyProcedure>(options: InputFormOptions<P>): InputForm {
  const { procedure } = options;
  const paths: readonly string[] = options.paths;
  const id = useId();
  const tried = ref(false);
  const input = computed(options.input);
  const sent = ref(false);
  const action = useAction(async () => {
    if (options.before && !(await options.before())) return;
    await options.send();
    sent.value = true;
  });
  const answered = computed(() => tellAt(action.error.value, paths));

  const found = computed<Problem[]>(() => {
    if (!tried.value) return [];
    return issuesOf(procedure.input as JsonSchema, input.value).map((why) => {
      const path = dotted(why.path);
      const value = valueAt(input.value, path);
      const empty = value === '' || (Array.isArray(value) && value.length === 0);
      return { path, why: empty ? { path: why.path, keyword: 'required', params: {} } : why };
    });
  });
  const own = computed(() => (tried.value ? (options.own?.() ?? {}) : {}));
  const problem = (path: string) =>
    own.value[path] || problemText(path, [...found.value, ...answered.value.told], valueAt(input.value, path));

  const typed = () => JSON.stringify((options.typed ?? options.input)());
  const untouched = typed();
  // What is being sent is no reason to ask: the page that opens when it was taken takes the form away.
  const dirty = computed(() => !sent.value && !action.running.value && typed() !== untouched);

  // An answer is about what was sent.
  watch(
    () => JSON.stringify(input.value),
    () => {
      action.error.value = null;
    },
  );

  async function run(): Promise<void> {
    if (action.running.value) return;
    tried.value = true;
    const wrong = found.value.filter(({ path }) => paths.some((field) => isAt(field, path)));
    if (wrong.length === 0 && Object.values(own.value).every((text) => text === '')) await action.run();
    await nextTick();
    if (paths.some((path) => problem(path) !== '')) focusProblem(document.getElementById(id));
  }

  return {
    id,
    procedure,
    input,
    running: action.running,
    dirty,
    error: computed(() => answered.value.rest),
    problem,
    run,
  };
}
