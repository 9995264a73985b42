import type { Output } from '@contract/procedure.ts';
import type { ipLists } from '@contract/resources/ip-lists.ts';
import type { Tone } from '@/shared/state/tone.ts';

export type IpList = Output<typeof ipLists.get>;
export type Kind = IpList['kind'];
export const KINDS: readonly Kind[] = ['collection', 'allow', 'block'];
export const KIND_TONES: Readonly<Record<Kind, Tone>> = { collection: 'grey', allow: 'green', block: 'red' };
