// All restorers of saved settings, by the kind of entry that is compiled from them.
import type { ServiceFeature } from '../../mixins/service-feature.ts';
import type { SettingsRestorer } from '../../mixins/settings-restorer.ts';
import { FEATURES } from '../gen/features.ts';

export const RESTORERS: readonly SettingsRestorer[] = FEATURES.flatMap(({ restores = [] }: ServiceFeature) => restores);

/** Settings that are put back at once at most: each is saved by itself. */
export const MAX_RESTORED = 200;

/** The restorer of a kind that has one. */
export function restorerOf(name: string): SettingsRestorer {
  return RESTORERS.find(({ kind }) => kind === name)!;
}
