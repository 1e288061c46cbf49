/**
 * The page on the real server with fixed facts, and the rules of accessibility run over what a browser made of it.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { realClock } from '../../src/app/real-clock.ts';
import type { PageFacts } from '../../src/core/page-facts.ts';
import type { StatusReport } from '../../src/core/status.ts';
import { type StatusServer, serveStatus } from '../../src/observe/server.ts';
import type { OverviewParts } from '../../src/page/overview.ts';
import { createStatusPage, type StatusPageParts } from '../../src/page/page.ts';
import { factsOf, REPORT, rowOf, STANDING } from './facts.ts';

/** The served facts; a test changes them while it runs. */
export interface Shown {
  standing: OverviewParts;
  facts: PageFacts;
  /** Links to elsewhere. */
  links?: StatusPageParts['links'];
}

export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly shown: Shown;
  readonly server: StatusServer;
  /** The errors in making answers. */
  readonly errors: readonly string[];
}

/** The text of an answer. */
export async function textOf(url: string): Promise<string> {
  return await (await fetch(url)).text();
}

/** @param port 0: a free one. */
export async function servePage(shown: Partial<Shown> = {}, port = 0): Promise<Served> {
  const facts = shown.facts ?? factsOf(Array.from({ length: 60 }, (_, index) => rowOf(index)));
  const now: Shown = { standing: STANDING, ...shown, facts };
  const errors: string[] = [];
  let nowMs = 0;
  const current: PageFacts = {
    devices: (query) => now.facts.devices(query),
    device: async (id, seconds) => await now.facts.device(id, seconds),
    alerts: () => now.facts.alerts(),
    events: () => now.facts.events(),
  };
  const server = await serveStatus({
    listen: { host: '127.0.0.1', port },
    names: [],
    password: () => null,
    clock: {
      monoMs: () => nowMs,
      // A second passes after each answer: none is kept for the next one.
      sleep: async (ms, signal) => {
        nowMs += 1000;
        await realClock.sleep(ms, signal);
      },
    },
    status: () => REPORT,
    page: createStatusPage({ overview: () => now.standing, facts: current, links: shown.links ?? [] }),
    health: () => now.standing.health,
    ready: async () => now.standing.ready,
    metrics: { text: async () => await Promise.resolve(''), contentType: 'text/plain' },
    onError: (message) => errors.push(message),
  });
  return { url: server.url, shown: now, server, errors, [Symbol.asyncDispose]: async () => await server.close() };
}

/** The same standing with parts of its report changed. */
export function standingWith(report: Partial<StatusReport>, more: Partial<OverviewParts> = {}): OverviewParts {
  return { ...STANDING, ...more, report: { ...REPORT, ...report } };
}

interface AxeResults {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary: string }[];
  }[];
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** Every rule of axe that the page breaks, with where. */
export async function violations(page: Page): Promise<string[]> {
  // Bypasses the page's policy, like a debugger.
  await page.evaluate(readFileSync(AXE, 'utf8'));
  const found = (await page.evaluate("axe.run(document, { resultTypes: ['violations'] })")) as AxeResults;
  return found.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} at ${target.join(' ')}: ${failureSummary}`),
  );
}
