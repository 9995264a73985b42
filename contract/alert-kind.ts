// What raises an alert, as a line of `alerts` in a resource's <name>.codes.ts.

/** Languages of messages about alerts. */
export const ALERT_LOCALES = ['zh-CN', 'en'] as const;
export type AlertLocale = (typeof ALERT_LOCALES)[number];

export interface AlertKindEntry {
  /** Place in lists. */
  readonly order: number;
  /**
   * Channels that receive it: those subscribed to the site; those subscribed to a site of the node's cluster; or only those that
   * receive everything.
   */
  readonly audience: 'site' | 'cluster' | 'everything';
  /**
   * What messages say when it begins and when it ends. `{name}` is the name of what it is about; other words in braces are
   * those of its detail.
   */
  readonly text: Readonly<Record<AlertLocale, { readonly firing: string; readonly resolved: string }>>;
}

export type AlertKindEntries = Readonly<Record<string, AlertKindEntry>>;
