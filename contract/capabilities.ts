// Capabilities a node can report, oldest first. Names are never reused; each line says what the node understands.
export const CAPABILITIES = {
  'bans-v1': 'enforces bans of the ban feed over HTTP',
  'kernel-ban-v1': 'drops global bans in the kernel; reported only while its nftables table works',
  'client-ip-v1': 'client address modes proxy_protocol and header',
  'domains-v2': 'suffix (.a.com) and pattern (~regex) domains',
  'unknown-host-v1': 'unknown host and IP access actions',
  'challenge-v1': 'challenges, passes, CC mitigation and automatic bans',
  'metrics-v1': 'machine metrics in heartbeats',
  'partial-config-v1': 'keeps entries that need a missing capability unapplied, and applies everything else',
  'canary-v1': 'runs the candidate of a canary when the node takes part in it',
  'rules-v1': 'rules of sites and of the platform, with the first version of the rule language',
  'rules-v2':
    'functions, computed values, edits of queries, origin and compression actions, bulk redirects, origin groups',
  'rules-v3':
    'cookies, arguments and further fields, encodings and hashes, wildcards, computed headers, appended headers',
  'rule-log-v1': 'reports how many requests matched which rules, and the action taken',
  'ja4-v1': 'the TLS fingerprint JA4',
  'geoip-country-v1': 'the country of a client; the node state says whether the database is present',
  'geoip-subdivision-v1': 'the country subdivision of a client',
  'geoip-asn-v1': 'the autonomous system of a client; the node state says whether the database is present',
  'https-v1': 'HTTPS: certificates fetched by a separate call, redirects, HSTS, session tickets of the cluster',
  'http3-v1': 'HTTP/3',
  'http01-v1': 'publishes HTTP-01 responses for certificate authorities',
  'edge-ports-v1': 'ports besides 80 and 443, and sites bound to some of them',
  'tls-pending-domains-v1': 'domains served over plain HTTP only until a certificate covers them',
  'probe-health-v1': 'responds to TLS health checks without a server name, with a certificate of its own',
  'client-certificates-v1': 'requests client certificates',
  'compression-v1': 'compresses responses as each site sets it',
  'brotli-v1': 'compresses responses with Brotli',
  'zstd-v1': 'compresses responses with Zstandard',
  'modsecurity-v1': 'inspects requests with the OWASP Core Rule Set',
  'waf-exclusions-v1': 'WAF rule exclusions by path and parameter',
  'path-normalization-v1': 'normalizes the paths of requests, as each site sets it',
  'request-buffering-v1': 'sends request bodies of a site to its origins as they arrive, if the site wants that',
  'vitals-v1': 'reports every 5 s the health of sites that just changed, while the console requests it',
} as const;

export type Capability = keyof typeof CAPABILITIES;
