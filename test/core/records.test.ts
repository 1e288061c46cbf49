/** The records of a full page. */
import { expect, test } from 'vitest';
import { pageSizeOf } from '../../src/core/records.ts';

test.each([
  [undefined, 200],
  [null, 200],
  [120, 120],
  [120.9, 120],
  [1000, 200],
  [0, 1],
  [0.5, 1],
  [-3, 1],
  [Number.NaN, 1],
])('a plan with pages of %s has full pages of %d', (maxDevicesPerPage, records) => {
  expect(pageSizeOf(maxDevicesPerPage === undefined ? null : { maxDevicesPerPage })).toBe(records);
});
