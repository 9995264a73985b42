// What a feature folder adds to the console. `features/<name>/feature.ts` exports one by default; nothing else knows the
// folder. It is loaded with the frame, so it holds titles and addresses only: pages, search and checks are imported when
// they are needed.
import type { Component } from 'vue';
import type { RouteLocationRaw } from 'vue-router';
import type { Text } from '@/shared/i18n/locale.ts';

export type NavigationGroup = 'top' | 'protection' | 'network' | 'system';

export interface NavigationEntry {
  group: NavigationGroup;
  /** Place within the group. */
  order: number;
  title: Text;
  icon: Component;
  /** Path of the page. */
  to: string;
}

export interface FeatureRoute {
  path: string;
  name: string;
  title: Text;
  component: () => Promise<unknown>;
  /** Shown without the frame: sign-in and set-up. */
  bare?: boolean;
  /** Reachable without a session. */
  open?: boolean;
  /** Pages inside this one, such as tabs. */
  children?: Omit<FeatureRoute, 'bare' | 'open'>[];
  redirect?: RouteLocationRaw;
}

/** A tab of a site's page; `/sites/<id>/<name>`. Its component gets the props `site` and `reload`. */
export interface SiteTab {
  name: string;
  order: number;
  title: Text;
  component: () => Promise<unknown>;
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
  siteTabs?: SiteTab[];
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
