// The static configuration Caddy is started with. Nothing about sites is in it: they travel over the edge socket.
export interface CaddyConfigOptions {
  /** Folder with the journals and keys Caddy reads. */
  stateDir: string;
  socketPath: string;
  /** Socket of the process that keeps the node's sockets open while Caddy is started anew. */
  holdSocket?: string | undefined;
  /** Listen addresses in Caddy's form, such as ":80". */
  httpListen: readonly string[];
  /** The same for HTTPS; none: nothing is served with TLS. */
  httpsListen: readonly string[];
  banCapacity: number;
  banMaxMib: number;
  /** Peers that may send a PROXY protocol header, CIDRs. */
  proxyPeers: readonly string[];
  /** What the agent can do by itself: entries may ask for it, too. */
  agentCapabilities?: readonly string[];
  /** Files of GeoIP databases. */
  geoipCountry?: string | undefined;
  geoipAsn?: string | undefined;
  /** Address for metrics, such as "127.0.0.1:9465"; none: only the socket has them. */
  metricsListen?: string | undefined;
  /** Sites with metrics of their own, or "all". */
  metricsSites?: readonly string[];
  /** Client connections at a time, in all, of one /24 (IPv6: /48) and of one address (IPv6: /64); 0 = derived. */
  maxConnections?: number;
  maxConnectionsPerNetwork?: number;
  maxConnectionsPerAddress?: number;
  /** Memory of requests in progress in MiB, in all and of one /24 (IPv6: /48); 0 = derived. */
  maxRequestMib?: number;
  maxRequestMibPerNetwork?: number;
  /** Connections in use to one origin; 0 = a quarter of what the node can hold. */
  maxConnectionsPerOrigin?: number;
  /** How long last addresses of origins serve while DNS does not respond, seconds; 0 = default. */
  originStaleSeconds?: number;
  /** How long the client of a request body is waited for in all, minutes; 0 = default. */
  maxBodyMinutes?: number;
}

/** Caddy's JSON for this node. */
export function renderCaddyConfig(options: CaddyConfigOptions): Record<string, unknown> {
  return {
    // The admin endpoint could replace everything below; the edge socket has its own rights and semantics.
    admin: { disabled: true, config: { persist: false } },
    logging: { logs: { default: { writer: { output: 'stderr' }, encoder: { format: 'json' }, level: 'INFO' } } },
    apps: {
      svc: {
        state_dir: options.stateDir,
        socket: options.socketPath,
        ...(options.holdSocket ? { hold_socket: options.holdSocket } : {}),
        ban_capacity: options.banCapacity,
        ban_max_mib: options.banMaxMib,
        ...(options.maxConnectionsPerOrigin ? { max_origin_connections: options.maxConnectionsPerOrigin } : {}),
        ...(options.originStaleSeconds ? { origin_stale_seconds: options.originStaleSeconds } : {}),
        ...(options.geoipCountry ? { geoip_country: options.geoipCountry } : {}),
        ...(options.geoipAsn ? { geoip_asn: options.geoipAsn } : {}),
        ...(options.metricsListen ? { metrics_listen: options.metricsListen } : {}),
        ...(options.metricsSites?.length ? { metrics_sites: options.metricsSites.join() } : {}),
        ...(options.maxBodyMinutes ? { max_body_seconds: 60 * options.maxBodyMinutes } : {}),
        ...(options.agentCapabilities ? { agent_capabilities: [...options.agentCapabilities] } : {}),
      },
      http: {
        grace_period: '10s',
        servers: {
          edge: server('svc-http', options.httpListen, options),
          ...(options.httpsListen.length > 0 ? { 'edge-tls': server('svc-https', options.httpsListen, options) } : {}),
        },
      },
    },
  };
}

/** A server on a network of ours, whose listeners open and close the ports of the cluster beside their own address. */
function server(network: string, listen: readonly string[], options: CaddyConfigOptions): Record<string, unknown> {
  return {
    listen: listen.map((address) => `${network}/${address}`),
    // Without TLS the listeners refuse HTTP/2; HTTP/3 is served beside Caddy.
    protocols: ['h1', 'h2'],
    automatic_https: { disable: true },
    listener_wrappers: [
      {
        wrapper: 'svc',
        proxy_peers: [...options.proxyPeers],
        max_connections: options.maxConnections ?? 0,
        max_per_network: options.maxConnectionsPerNetwork ?? 0,
        max_per_address: options.maxConnectionsPerAddress ?? 0,
        max_request_mib: options.maxRequestMib ?? 0,
        max_request_mib_per_network: options.maxRequestMibPerNetwork ?? 0,
      },
    ],
    read_header_timeout: '10s',
    // Caddy's default of 60 s between two reads breaks uploads that pause and quiet streams.
    read_idle_timeout: -1,
    write_idle_timeout: '60s',
    idle_timeout: '75s',
    // The edge refuses what the cluster does not accept, at most 88 KiB; net/http only says 431 above this.
    max_header_bytes: 98_304,
    // Requests skip the chain of Caddy's server, which has nothing else in it.
    routes: [{ handle: [{ handler: 'svc_edge', direct: true }] }],
    // What Caddy itself refuses gets our page and code, too.
    errors: { routes: [{ handle: [{ handler: 'svc_error' }] }] },
  };
}
