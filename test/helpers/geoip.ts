// The GeoIP databases that nodes come with, for tests that give them to a node.
export { type GeoipDatabases, geoipDatabases } from '../../bin/lib/geoip/databases.ts';
