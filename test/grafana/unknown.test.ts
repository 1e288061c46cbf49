/** A number whose queries return nothing is unknown, so it has no colour of calm. */
import { expect, test } from 'vitest';
import { FOLDER, readBoards, shownPanels, VICTORIA_FOLDER } from './support/boards.ts';
import { valuesOf } from './support/grafana.ts';
import { lineFrames } from './support/promql-frames.ts';

const NUMBERS = [FOLDER, VICTORIA_FOLDER]
  .flatMap((folder) => readBoards(folder))
  .flatMap((board) => shownPanels(board).map((panel) => [`${board.uid}: ${panel.title}`, panel] as const))
  .filter(([, { type }]) => type === 'stat' || type === 'bargauge');

test.each(NUMBERS)('%s is not green where nothing is known', async (_, panel) => {
  const shown = await valuesOf(panel, []);
  expect(shown).toHaveLength(1);
  expect(shown[0]?.color).not.toBe('green');
});

test.each([
  [0, 'text'],
  [4, 'orange'],
])('of the silent devices of the daemon, %d stands in %s', async (count, color) => {
  const panel = NUMBERS.find(([name]) => name === 'tidemark-sync: Silent')?.[1];
  const [target] = panel?.targets ?? [];
  if (panel === undefined || target === undefined) throw new Error('no panel');
  const shown = await valuesOf(panel, lineFrames([{ metric: {}, values: [[0, `${count}`]] }], target, 15_000));
  expect(shown.map(({ text, color }) => [text, color])).toEqual([[`${count}`, color]]);
});
