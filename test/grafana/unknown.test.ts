/** What a number is where its queries are answered nothing: not known, so in no colour of calm. */
import { expect, test } from 'vitest';
import { FOLDER, readBoards, shownPanels, VICTORIA_FOLDER } from './support/boards.ts';
import { valuesOf } from './support/grafana.ts';

const NUMBERS = [FOLDER, VICTORIA_FOLDER]
  .flatMap((folder) => readBoards(folder))
  .flatMap((board) => shownPanels(board).map((panel) => [`${board.uid}: ${panel.title}`, panel] as const))
  .filter(([, { type }]) => type === 'stat' || type === 'bargauge');

test.each(NUMBERS)('%s is not green where nothing is known', async (_, panel) => {
  const shown = await valuesOf(panel, []);
  expect(shown).toHaveLength(1);
  expect(shown[0]?.color).not.toBe('green');
});
