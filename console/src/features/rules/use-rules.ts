// State of a list of rules that is edited as a whole: what the server has, what the person made of it, and how both come
// together on save.
import type { RuleWarning } from '@contract/resources/rules.ts';
import type { Static } from 'typebox';
import { type ComputedRef, computed, type Ref, ref, type ShallowRef, shallowRef, watch } from 'vue';
import { asCallError, CallError } from '@/shared/api/call-error.ts';
import { type Action, useAction } from '@/shared/api/use-action.ts';
import { type Loaded, useLoad } from '@/shared/api/use-load.ts';
import { errorText } from '@/shared/error/error-text.ts';
import type { Choices } from '@/shared/forms/changes.ts';
import type { LiveFilters } from '@/shared/live/use-live.ts';
import { expressionErrorText } from './expression/error-text.ts';
import { type DraftRule, draftOf, inputOf, movedInPhase, type Rule } from './rule.ts';
import { type RuleChange, rulesDiff } from './rule-diff.ts';
import { mergeRules, type RuleConflict, withTheirs } from './rule-merge.ts';
import { type RuleProblem, refusedGroupText, ruleIssueText } from './rule-problems.ts';
import { refusedFields } from './rule-refusals.ts';

export interface RulesAnswer {
  rules: Rule[];
  updatedAt: string;
  warnings: Static<typeof RuleWarning>[];
}

export interface RulesInput {
  rules: ReturnType<typeof inputOf>;
  expectedUpdatedAt?: string;
}

export interface RulesOptions {
  read: (signal?: AbortSignal) => Promise<RulesAnswer>;
  save: (input: RulesInput) => Promise<RulesAnswer>;
  live: LiveFilters;
}

export interface RulesState {
  loaded: Loaded<RulesAnswer>;
  answer: ComputedRef<RulesAnswer | undefined>;
  rules: Readonly<ShallowRef<readonly DraftRule[]>>;
  changes: ComputedRef<readonly RuleChange[]>;
  dirty: ComputedRef<boolean>;
  /** Somebody else saved meanwhile, and my edits stand on top of that. */
  merged: Ref<boolean>;
  conflicts: ShallowRef<readonly RuleConflict[]>;
  /** What a save refused, by the rule's key. */
  refused: ShallowRef<ReadonlyMap<string, readonly RuleProblem[]>>;
  /** What a save refused of no rule. */
  error: ComputedRef<CallError | null>;
  save: Action<[], boolean>;
  input: ComputedRef<RulesInput>;
  nextKey: () => string;
  put: (rule: DraftRule) => void;
  add: (rule: DraftRule, behind?: string) => void;
  remove: (key: string) => void;
  move: (key: string, to: number) => void;
  replace: (rules: readonly DraftRule[]) => void;
  discard: () => void;
  resolve: (choices: Choices) => Promise<void>;
}

export function useRules(options: RulesOptions): RulesState {
  const base = shallowRef<RulesAnswer>();
  const rules = shallowRef<readonly DraftRule[]>([]);
  const merged = ref(false);
  const conflicts = shallowRef<readonly RuleConflict[]>([]);
  const refused = shallowRef<ReadonlyMap<string, readonly RuleProblem[]>>(new Map());
  const loaded = useLoad(options.read, { live: options.live });
  /** Keys of what was moved since it was read. */
  const picked = shallowRef<ReadonlySet<string>>(new Set());
  const changes = computed(() => rulesDiff(base.value?.rules ?? [], rules.value, picked.value));
  const dirty = computed(() => changes.value.length > 0);
  let keys = 0;

  function take(answer: RulesAnswer): void {
    base.value = answer;
    rules.value = answer.rules.map(draftOf);
    merged.value = false;
    picked.value = new Set();
    refused.value = new Map();
  }
  // What arrives while somebody edits waits for the save.
  watch(loaded.data, (answer) => answer && !dirty.value && take(answer), { immediate: true });

  function edit(next: readonly DraftRule[]): void {
    rules.value = next;
    save.error.value = null;
  }

  const input = computed<RulesInput>(() => ({
    rules: inputOf(rules.value),
    ...(base.value ? { expectedUpdatedAt: base.value.updatedAt } : {}),
  }));

  /** Saves; false: somebody else was quicker, and a person looks again. */
  const save = useAction(async () => {
    const sent = rules.value;
    refused.value = new Map();
    try {
      take(await options.save(input.value));
      return true;
    } catch (thrown) {
      const error = asCallError(thrown);
      if (error.code === 'UPDATED_AT_MISMATCH') {
        const theirs = await options.read();
        const outcome = mergeRules(base.value?.rules ?? [], sent, theirs.rules);
        base.value = theirs;
        rules.value = outcome.rules;
        conflicts.value = outcome.conflicts;
        merged.value = true;
        return false;
      }
      refused.value = refusals(error, sent);
      throw error;
    }
  });

  return {
    loaded,
    answer: computed(() => base.value),
    rules,
    changes,
    dirty,
    merged,
    conflicts,
    refused,
    error: computed(() => (refused.value.size > 0 ? null : save.error.value)),
    save,
    input,
    nextKey: () => `new ${++keys}`,
    put: (rule) => {
      refused.value = new Map([...refused.value].filter(([key]) => key !== rule.key));
      edit(rules.value.map((each) => (each.key === rule.key ? rule : each)));
    },
    add: (rule, behind) => {
      const at = rules.value.findIndex(({ key }) => key === behind);
      edit(rules.value.toSpliced(at < 0 ? rules.value.length : at + 1, 0, rule));
    },
    remove: (key) => edit(rules.value.filter((each) => each.key !== key)),
    move: (key, to) => {
      picked.value = new Set([...picked.value, key]);
      edit(movedInPhase(rules.value, key, to));
    },
    replace: edit,
    discard: () => {
      save.error.value = null;
      const now = loaded.data.value ?? base.value;
      if (now) take(now);
    },
    resolve: async (choices) => {
      rules.value = withTheirs(
        rules.value,
        conflicts.value.filter(({ id }) => choices[id] === 'theirs'),
      );
      conflicts.value = [];
      if (dirty.value) await save.run();
    },
  };
}

/** What a refusal says of each rule that was sent, in words. */
function refusals(error: CallError, sent: readonly DraftRule[]): Map<string, RuleProblem[]> {
  const found = new Map<string, RuleProblem[]>();
  for (const { key, path, why } of refusedFields(error, sent)) {
    const text = why instanceof CallError ? refusalText(why) : ruleIssueText(why);
    found.set(key, [...(found.get(key) ?? []), { path, text }]);
  }
  return found;
}

function refusalText(error: CallError): string {
  if (error.code !== 'RULE_INVALID') return errorText(error);
  const { code, position, params } = error.data as { code: string; position?: number; params: Record<string, string> };
  if (position !== undefined) return expressionErrorText({ code: code as never, position, params });
  return refusedGroupText(code, params) ?? errorText(error);
}
