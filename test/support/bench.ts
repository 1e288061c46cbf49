/**
 * A real InfluxDB that is reached as an InfluxDB 2 is: through its proxy, with a token.
 */
import { type Influxd, startInfluxd } from './influxd.ts';
import { startV2Proxy, type V2Proxy } from './v2-proxy.ts';

/** A database shared by the tests of a file; each user has a bucket of its own. */
export interface Bench extends AsyncDisposable {
  readonly influxd: Influxd;
  readonly proxy: V2Proxy;
}

/**
 * Starts it.
 *
 * @param token the one that the proxy requires
 */
export async function startBench(token: string): Promise<Bench> {
  const influxd = await startInfluxd();
  const proxy = await startV2Proxy({ upstream: influxd.url, token });
  return {
    influxd,
    proxy,
    [Symbol.asyncDispose]: async () => {
      await proxy.close();
      await influxd[Symbol.asyncDispose]();
    },
  };
}
