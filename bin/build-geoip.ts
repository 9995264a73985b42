// Makes the GeoIP databases that nodes come with and prints their folder, with country.mmdb and asn.mmdb in it:
//   node bin/bootstrap.mjs bin/build-geoip.ts
import { geoipDatabases } from './lib/geoip/databases.ts';
import { report } from './lib/progress.ts';

try {
  console.log((await geoipDatabases()).folder);
} catch (error) {
  report(error);
}
