// Where what a revision is about is seen: nowhere once it is deleted.
import type { Output } from '@contract/procedure.ts';
import type { revisions } from '@contract/resources/revisions.ts';

type Subject = Output<typeof revisions.revisions>['items'][number]['subject'];

const PAGES: Readonly<Record<NonNullable<Subject>['type'], string | null>> = {
  site: '/sites',
  ip_list: '/ip-lists',
  // Its revisions are on its page.
  cluster: null,
  ban: null,
};

/** Page of the subject; null when it has none. */
export function subjectPage(subject: Subject): string | null {
  const page = subject && PAGES[subject.type];
  return page && subject.exists && subject.id !== null ? `${page}/${subject.id}` : null;
}
