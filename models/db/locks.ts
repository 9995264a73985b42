// Advisory locks of transactions that order changes of more than one cluster. They come before the heads of clusters,
// which come before feeds: whoever needs several takes them in this order.

/** Cluster creation and new epochs hold it alone, platform changes hold it together: none of them misses the other. */
export const LOCK_PLATFORM = 'select pg_advisory_xact_lock(1398162180, 1)';
export const LOCK_PLATFORM_SHARED = 'select pg_advisory_xact_lock_shared(1398162180, 1)';
/** The numbers of the ban feed; the same as in the function ban_next of the database. */
export const LOCK_BAN_FEED = 'select pg_advisory_xact_lock(1398162179, 1)';
/** Reports of automatic bans of a cluster's sites, or with '' of the platform, come one after the other: limits hold. */
export const LOCK_BAN_REPORTS = 'select pg_advisory_xact_lock(1398162182, hashtext(?))';
