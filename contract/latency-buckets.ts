// How long answers took, counted by nodes in these buckets. The Go side of an edge has the same list
// (agents/caddy/exchange/latency.go), held by a test.

/** Upper bounds in milliseconds; one more bucket is above the last. At most 23. */
export const LATENCY_BOUNDS_MS = [
  1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16_384, 32_768,
] as const;
