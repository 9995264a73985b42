// How a service says what needs attention, and what alerts of it are about.
import type { AttentionItem, AttentionKind } from '../contract/resources/overview.ts';
import type { AlertSubject } from '../models/alerts/alert.ts';
import type { FleetFacts } from '../models/overview/fleet-facts.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Something that needs attention: its kind, and what of the item differs from nothing. */
export type FoundAttention = Pick<AttentionItem, 'kind'> & Partial<AttentionItem> & FoundSubjects;

interface FoundSubjects {
  /** Ids of all that the item concerns, where alerts are about sites, nodes or certificates; see `MAX_SUBJECTS`. */
  readonly subjects?: readonly string[];
}

export interface RegisteredAttention {
  /**
   * What one alert of the kind is about. `cluster` takes the item's `clusterId`; site, node and certificate take its `subjects`.
   * null: the kind raises no alert here.
   */
  readonly alert: AlertSubject | null;
  /** Items that are returned at most: with as many, some may be missing. Unless it is given, none is. */
  readonly most?: number;
}

export interface AttentionSource {
  /** Every kind that `find` returns. A kind stands in one source. */
  readonly kinds: Readonly<Partial<Record<AttentionKind, RegisteredAttention>>>;
  /**
   * What needs attention now, worst first; of one cluster when one is asked about: what concerns all of them concerns it, too.
   * Read every two seconds, so from an index.
   */
  find(
    sql: Runtime['pools']['api'],
    clusterId: string | null,
    fleet: Promise<FleetFacts>,
  ): Promise<readonly FoundAttention[]>;
}
