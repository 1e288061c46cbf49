/** The words for the states of devices and streams, which `--status` and the page share. */
import { expect, test } from 'vitest';
import { deviceStateText, streamStateText } from '../../src/core/status.ts';

test('every state has one word', () => {
  const devices = (['live', 'catching-up', 'silent', 'out-of-service', 'unreachable', 'excluded'] as const).map(
    deviceStateText,
  );
  expect(devices).toEqual(['live', 'catching up', 'silent', 'out of service', 'unreachable', 'excluded']);
  const streams = (['on', 'waiting', 'failing', 'off'] as const).map(streamStateText);
  expect(streams).toEqual(['on', 'not read yet', 'failing', 'off']);
});
