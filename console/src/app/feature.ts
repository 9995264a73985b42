// What a feature folder adds to the console. `features/<name>/feature.ts` exports one by default; nothing else knows the
// folder. It is loaded with the frame, so it holds titles and addresses only: pages, search and checks are imported when
// they are needed.
import type { Component } from 'vue';
import type { RouteLocationRaw } from 'vue-router';
import type { Text } from '@/shared/i18n/locale.ts';
import type { PartGroup } from '@/shared/page/parts.ts';

/** Groups of the navigation in their order; `top` has no heading. */
export const NAVIGATION_GROUPS = ['top', 'delivery', 'protection', 'network', 'system'] as const;
export type NavigationGroup = (typeof NAVIGATION_GROUPS)[number];

export interface NavigationEntry {
  group: NavigationGroup;
  /** Place within the group. */
  order: number;
  title: Text;
  icon: Component;
  /** Path of the page. */
  to: string;
}

/** The page of docs/ that explains a page, and a heading of it if needed: `edge-node#client-addresses`. Default: the index. */
export type DocsPlace = string;

export interface FeatureRoute {
  path: string;
  name: string;
  title: Text;
  /** Left out where its parts are pages of their own, with tabs between them (PageHead shows them). */
  component?: () => Promise<unknown>;
  /** Shown without the frame: sign-in and set-up. */
  bare?: boolean;
  /** Reachable without a session. */
  open?: boolean;
  docs?: DocsPlace;
}

/**
 * A part of a page: of an object (site, cluster, node), whose ObjectPage shows them in a second column and gives them
 * their props (those of a site: `site` and `reload`), or a tab of an entry of the navigation. Any feature may add one to
 * any route, by that route's name.
 */
export interface Part {
  /** Name of the route that it is a part of. */
  of: string;
  /** Its address below that route's; '' for the address of the route itself. */
  name: string;
  /** Place within the group. */
  order: number;
  /** Its heading in the second column of an object; default `top`, which has none. */
  group?: PartGroup;
  title: Text;
  component: () => Promise<unknown>;
  /** Default: that of the route it is a part of. */
  docs?: DocsPlace;
}

export interface SearchResult {
  key: string;
  title: string;
  detail?: string;
  to?: RouteLocationRaw;
  run?: () => void;
}

/** Answers at most ten results for what was typed. */
export type SearchProvider = (text: string, signal: AbortSignal) => Promise<SearchResult[]>;

export interface PaletteAction {
  title: Text;
  /** More words that find it. */
  words?: Text;
  to?: RouteLocationRaw;
  run?: () => void | Promise<void>;
}

export interface Feature {
  routes?: FeatureRoute[];
  navigation?: NavigationEntry[];
  parts?: Part[];
  /** Where an object of a type is shown, by the type's name in the contract, and a part of it by that part's name. */
  places?: Readonly<Record<string, (id: string, part?: string) => string>>;
  /** Other folders whose messages this feature's pages use. */
  uses?: string[];
  /** Heading of its results in the palette. */
  searchTitle?: Text;
  search?: () => Promise<SearchProvider>;
  actions?: PaletteAction[];
}

export interface NamedFeature extends Feature {
  name: string;
}
