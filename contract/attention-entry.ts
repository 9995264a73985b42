// What can need somebody, as a line of `attention` in a resource's <name>.codes.ts.

export interface AttentionEntry {
  /** Place in the list among kinds that the specification does not have; its own kinds come first, in its order. */
  readonly order: number;
  /** act: something does not work; watch: it may stop to, or is meant. An item may say otherwise. */
  readonly level: 'act' | 'watch';
  /** Where all of it is seen in the Web UI. */
  readonly page: string;
}

export type AttentionEntries = Readonly<Record<string, AttentionEntry>>;
