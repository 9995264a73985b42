// What a page tells the frame, and what the frame tells a page, without either knowing the other.
import { ref } from 'vue';
import type { Text } from '@/shared/i18n/locale.ts';

/** The object a page shows, in front of the page's title: the name of a site. Cleared when another page is opened. */
export const pageSubject = ref('');

export interface Tab {
  name: string;
  title: Text;
}

const tabs = new Map<string, readonly Tab[]>();

/** Told by the router: which tabs the feature folders put on a page. */
export function setTabs(page: string, given: readonly Tab[]): void {
  tabs.set(page, given);
}

export function tabsOf(page: string): readonly Tab[] {
  return tabs.get(page) ?? [];
}
