/** The words for the states of devices and streams, which `--status` and the page share. */
import { expect, test } from 'vitest';
import { deviceStateText, streamStateText } from '../../src/core/status.ts';

test('every state has one word', () => {
  const devices = (['live', 'catching-up', 'silent', 'out-of-service', 'unreachable', 'excluded'] as const).map(
    deviceStateText,
  );
  expect(devices).toEqual(['live', 'catching up', 'silent', 'out of service', 'unreachable', 'excluded']);
  const streams = (['on', 'waiting', 'failing', 'off'] as const).map((state) =>
    streamStateText({ state, last_read_at: null }),
  );
  expect(streams).toEqual(['on', 'not read yet', 'failing', 'off']);
  const before = { state: 'waiting', last_read_at: '2026-06-15T12:00:00Z' } as const;
  expect(streamStateText(before)).toBe('not read since the start');
});
