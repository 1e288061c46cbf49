/**
 * What stands in a page's address, read at the border: what cannot be meant falls back to what is shown without it.
 */
import { DEVICE_SORTS, type DevicesQuery } from '../core/page-facts.ts';
import type { Html } from './html.ts';
import { STATE_ORDER, target } from './html.ts';

const MAX_SEARCH = 200;
const MAX_PAGE = 1_000_000;

/** The spans that a device's charts are drawn over, in seconds, by their names in the address. */
export const SPANS = { '6h': 21_600, '24h': 86_400, '7d': 604_800, '30d': 2_592_000 } as const;

/** The name of a range of time in the address. */
export type SpanName = keyof typeof SPANS;

const SPAN_WORDS: Readonly<Record<SpanName, string>> = {
  '6h': '6 hours',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
};

/** The range as it is shown. */
export function spanName(name: SpanName): string {
  return SPAN_WORDS[name];
}

/** The part of the devices that an address asks for. */
export function readDevicesQuery(params: URLSearchParams): DevicesQuery {
  const state = STATE_ORDER.find((each) => each === params.get('state')) ?? null;
  const sort = DEVICE_SORTS.find((each) => each === params.get('sort')) ?? 'state';
  const page = params.get('page') ?? '';
  return {
    search: [...(params.get('search') ?? '').trim()].slice(0, MAX_SEARCH).join(''),
    state,
    sort,
    reversed: params.get('reversed') === '1',
    page: /^[1-9]\d{0,6}$/.test(page) ? Math.min(Number(page), MAX_PAGE) : 1,
  };
}

/** The range of time that an address asks for; a day where it asks for none. */
export function readSpan(params: URLSearchParams): SpanName {
  return (Object.keys(SPANS) as SpanName[]).find((each) => each === params.get('span')) ?? '24h';
}

/** The address of a part of the devices; what is the rule is left out of it. */
export function devicesTarget({ search, state, sort, reversed, page }: DevicesQuery, path = '/'): Html {
  const link = target(path, {
    search,
    state,
    sort: sort === 'state' ? null : sort,
    reversed: reversed ? 1 : null,
    page: page === 1 ? null : page,
  });
  return path === '/' ? { html: `${link.html}#devices` } : link;
}
