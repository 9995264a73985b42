// IDs of the packs of WAF exclusions, in the order in which they are shown; waf-packs.ts has the packs.
export const WAF_PACK_IDS = ['wordpress', 'nextcloud', 'grafana', 'git'] as const;
export type WafPackId = (typeof WAF_PACK_IDS)[number];
