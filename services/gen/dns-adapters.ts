// Written by `npm run generate` from the files it imports. Changes here are lost.

export const DNS_ADAPTERS = [
] as const;
