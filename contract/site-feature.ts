// What the settings of sites may ask of nodes, as a line of `siteFeatures` in a resource's <name>.codes.ts.

export interface SiteFeatureEntry {
  /** What a node must report. */
  readonly capability: string;
  /** Whether this version of the console configures it. */
  readonly configured: boolean;
}

export type SiteFeatureEntries = Readonly<Record<string, SiteFeatureEntry>>;
