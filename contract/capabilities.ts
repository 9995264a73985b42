// Capabilities a node can report, oldest first. Names are never reused; each line says what the node understands.
export const CAPABILITIES = {
  'bans-v1': 'enforces bans of the ban feed at HTTP level',
  'kernel-ban-v1': 'drops global bans in the kernel; reported only while its nftables table works',
  'client-ip-v1': 'client address modes proxy_protocol and header',
  'domains-v2': 'suffix (.a.com) and pattern (~regex) domains',
  'unknown-host-v1': 'unknown host and IP access actions',
  'challenge-v1': 'challenges, passes, CC mitigation and automatic bans',
  'metrics-v1': 'machine metrics in heartbeats',
  'partial-config-v1': 'holds entries that need a capability it lacks, and takes over everything else',
  'canary-v1': 'runs what a canary of its cluster tries, when it takes part in one',
  'rules-v1': 'rules of sites and of the platform, with what the first version of their language has',
  'rules-v2':
    'functions, computed values, edits of queries, origin and compression actions, bulk redirects, origin groups',
  'rules-v3':
    'cookies, arguments and further fields, encodings and hashes, wildcards, computed headers, appended headers',
  'rule-log-v1': 'tells what became of how many requests under which rules',
  'ja4-v1': 'the TLS fingerprint JA4',
  'geoip-country-v1': 'the country of a visitor; whether the node has the database is its state',
  'geoip-subdivision-v1': 'the part of the country of a visitor',
  'geoip-asn-v1': 'the autonomous system of a visitor; whether the node has the database is its state',
  'https-v1': 'HTTPS: certificates of its own call, redirects, HSTS, session tickets of the cluster',
  'http3-v1': 'HTTP/3',
  'http01-v1': 'answers certificate authorities over HTTP (HTTP-01)',
  'edge-ports-v1': 'ports besides 80 and 443, and sites bound to some of them',
  'tls-pending-domains-v1': 'domains that are reached by plain HTTP alone until a certificate covers them',
  'probe-health-v1': 'answers health checks over TLS without a name, with a certificate of its own',
  'client-certificates-v1': 'asks clients for certificates',
  'compression-v1': 'compresses answers as each site says',
  'brotli-v1': 'compresses answers with Brotli',
  'zstd-v1': 'compresses answers with Zstandard',
  'modsecurity-v1': 'inspects requests with the OWASP Core Rule Set',
  'waf-exclusions-v1': 'exclusions of rules of the WAF by path and parameter',
  'vitals-v1': 'tells every 5 s how sites that just changed fare, while the console asks for it',
} as const;

export type Capability = keyof typeof CAPABILITIES;
