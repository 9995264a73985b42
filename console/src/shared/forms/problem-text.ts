import { nextTick } from 'vue';
import { errorText, issueText } from '@/shared/error/error-text.ts';
import { i18n } from '@/shared/i18n/i18n.ts';
import { isAt, type Problem } from './problems.ts';

/** What a field has to say: the first of its problems, with the number of the entry where its value has several. */
export function problemText(path: string, problems: readonly Problem[], value?: unknown): string {
  const problem = problems.find((candidate) => isAt(path, candidate.path));
  if (!problem) return '';
  // A code's own words name the value.
  if (!('keyword' in problem.why)) return errorText(problem.why);
  const text = issueText(problem.why);
  const entry = Array.isArray(value) && value.length > 1 ? /^\d+/.exec(problem.path.slice(path.length + 1)) : null;
  return entry ? i18n.global.t('shared.field.entry', { number: Number(entry[0]) + 1, text }) : text;
}

/** Brings the first wrong field of a form into view and gives it the focus. */
export function focusProblem(form: Element | null | undefined): void {
  const field = form?.querySelector<HTMLElement>('.is-wrong :is(input, textarea, [tabindex="0"])');
  for (let fold = field?.closest('.fold'); fold; fold = fold.parentElement?.closest('.fold'))
    if (!fold.classList.contains('is-open')) fold.querySelector<HTMLElement>(':scope > .fold__button')?.click();
  void nextTick().then(() => field?.focus());
}
