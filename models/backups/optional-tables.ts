// Tables that a backup can be made without. All others are always in it: a new table is unless it is named here.

/** By the part they belong to. Usage stays: records are computed from its minutes again when a late report arrives. */
export const OPTIONAL_TABLES = {
  logs: ['request_log', 'request_log_loss', 'request_log_missing', 'security_event', 'security_event_day'],
  statistics: [
    'cluster_request_minute',
    'node_metrics_minute',
    'propagation',
    'rule_hour',
    'rule_minute',
    'security_heavy',
    'site_request_minute',
    'top_list',
    'top_mark',
    'traffic_day',
    'traffic_hour',
    'traffic_mark',
    'traffic_minute',
    'traffic_window',
  ],
} as const;
