// Parts of a page as its navigation shows them. Told by the router, which has them from the feature folders; the page knows
// none of them.
import type { Text } from '@/shared/i18n/locale.ts';

/** Groups of an object's parts in their order; `top` and `last` have no heading. */
export const PART_GROUPS = ['top', 'delivery', 'protection', 'last'] as const;
export type PartGroup = (typeof PART_GROUPS)[number];

export interface PagePart {
  name: string;
  title: Text;
  group?: PartGroup;
}

const parts = new Map<string, readonly PagePart[]>();

export function setParts(page: string, given: readonly PagePart[]): void {
  parts.set(page, given);
}

/** Parts of the route of this name, in their order. */
export function partsOf(page: string): readonly PagePart[] {
  return parts.get(page) ?? [];
}

/** Address of a part below that of its page. */
export function partPath(base: string, { name }: Pick<PagePart, 'name'>): string {
  return name === '' ? base : `${base}/${name}`;
}
