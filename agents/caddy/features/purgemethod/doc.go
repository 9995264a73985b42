// Package purgemethod takes PURGE requests of clients for sites that have them on.
//
// The key in X-Purge-Key is compared with a keyed hash under the secret of the cluster, so neither the key nor what it could be
// guessed from is in the configuration. The agent has the console make the task; it is given the site and the URL, never the key.
// Rates are bounded before the key is looked at, per client network, and after it, per site.
package purgemethod
