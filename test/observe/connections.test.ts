/** Which connections of the HTTP server are dropped when there are too many, or when clients do not read. */
import { describe, expect, test } from 'vitest';
import { type ClientConnection, connectionsToDrop, readersToDrop } from '../../src/observe/connections.ts';

const many = (count: number, standing: Omit<ClientConnection, 'since'>, from = 0): ClientConnection[] =>
  Array.from({ length: count }, (_, index) => ({ ...standing, since: from + index }));

describe('of too many connections', () => {
  test('none is dropped while there is room', () => {
    expect(connectionsToDrop(many(100, { address: 'a', phase: 'request' }), 100)).toEqual([]);
  });

  test('the slow ones go first, those that are slow for longest before the others; then the idle ones', () => {
    const idle = many(4, { address: 'a', phase: 'idle' });
    const answered = many(4, { address: 'a', phase: 'answer' }, 10);
    const slow = [
      ...many(2, { address: 'a', phase: 'request' }, 20),
      ...many(2, { address: 'a', phase: 'reading' }, 30),
    ];
    const all = [...answered, ...idle, ...slow.toReversed()];
    expect(connectionsToDrop(all, 6)).toEqual([...slow, ...idle.slice(0, 2)]);
  });

  test('an address that has few keeps them, whatever another one does', () => {
    const own = many(3, { address: 'b', phase: 'request' });
    const greedy = many(200, { address: 'a', phase: 'answer' }, 50);
    const dropped = connectionsToDrop([...own, ...greedy], 100);
    expect([dropped.length, new Set(dropped.map(({ address }) => address))]).toEqual([103, new Set(['a'])]);
  });

  test('where every address has few, the slowest goes', () => {
    const all = Array.from({ length: 40 }, (_, index) =>
      many(5, { address: `a${index}`, phase: 'request' }, index * 5),
    ).flat();
    expect(connectionsToDrop(all, 100)).toEqual(all.slice(0, 100));
  });
});

describe('of responses that are not read', () => {
  const bodies = Array.from({ length: 5 }, () => Buffer.alloc(10));
  const readers = bodies.map((unread, since) => ({ unread, since }));

  test('as many are kept as fit beside the largest one', () => {
    expect(readersToDrop(readers.toReversed(), 40)).toEqual([]);
    expect(readersToDrop(readers.toReversed(), 20)).toEqual([readers[1], readers[0]]);
  });

  test('the largest one is kept while others are added', () => {
    expect(readersToDrop([...readers, { unread: Buffer.alloc(1000), since: -1 }], 50)).toEqual([]);
  });

  test('one that many clients have is counted once, and a client without one never', () => {
    const same = Array.from({ length: 50 }, (_, since) => ({ unread: bodies[0] ?? null, since }));
    const none = Array.from({ length: 50 }, (_, since) => ({ unread: null, since }));
    expect(readersToDrop([...same, ...none], 10)).toEqual([]);
  });
});
