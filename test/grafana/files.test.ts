/** The dashboards as files: what is committed is what is generated, Grafana reads it, and an owner finds the way. */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { generatedFiles } from '../../grafana/source/all.ts';
import {
  allPanels,
  asksInflux,
  type Board,
  boardFiles,
  FOLDER,
  type Panel,
  queryOf,
  readBoards,
  shownPanels,
  VICTORIA_FOLDER,
} from './support/boards.ts';
import { knownUnits, typeFaults } from './support/sdk-types.ts';

const boards = [FOLDER, VICTORIA_FOLDER].flatMap((folder) => readBoards(folder));
const panels = boards.flatMap((board) => shownPanels(board).map((panel) => ({ board, panel })));

test.each([...generatedFiles()])('grafana/%s equals the generated file (npm run dashboards)', (name, text) => {
  expect(readFileSync(`grafana/${name}`, 'utf8')).toBe(text);
});

test('there is no file of a dashboard that is gone', () => {
  const generated = [...generatedFiles().keys()].filter((name) => name.startsWith('dashboards'));
  const found = [FOLDER, VICTORIA_FOLDER].flatMap((folder) => boardFiles(folder).map((name) => `${folder}/${name}`));
  expect(found.sort()).toEqual(generated.map((name) => `grafana/${name}`).sort());
});

describe("Grafana's types", () => {
  const MODULES: Record<string, string> = { 'state-timeline': 'statetimeline' };
  const moduleOf = (type: string): string => MODULES[type] ?? type;
  const boardClaims = boards.flatMap((board) => [
    { name: board.uid, type: 'dashboard.Dashboard', value: board },
    ...board.panels.map((panel) => ({
      name: `${board.uid}: ${panel.title}`,
      type: panel.type === 'row' ? 'dashboard.RowPanel' : 'dashboard.Panel',
      value: panel,
    })),
  ]);
  const optionClaims = panels.flatMap(({ board, panel }) => {
    const own = panel.fieldConfig?.defaults['custom'];
    const name = `${board.uid}: ${panel.title}`;
    return [
      { name: `options of ${name}`, type: `${moduleOf(panel.type)}.Options`, value: panel.options },
      ...(own === undefined
        ? []
        : [{ name: `fields of ${name}`, type: `${moduleOf(panel.type)}.FieldConfig`, value: own }]),
    ];
  });
  const claims = [...boardClaims, ...optionClaims];
  const faults = typeFaults(claims);

  test.each(claims.map(({ name }, index) => [name, faults[index]] as const))('hold for the %s', (_, found) => {
    expect(found).toEqual([]);
  });

  test('would find a member too many, one too few, a wrong word and a wrong type', () => {
    const valid = { alignValue: 'left', legend: LEGEND, rowHeight: 0.9, showValue: 'never', tooltip: TOOLTIP };
    const { legend: _without, ...rest } = valid;
    const type = 'statetimeline.Options';
    const found = typeFaults(
      [
        valid,
        { ...valid, rowHight: 1 },
        rest,
        { ...valid, showValue: 'ever' },
        { ...valid, rowHeight: '1' },
        { ...valid, tooltip: { ...TOOLTIP, mood: 1 } },
      ].map((value) => ({ type, value })),
    );
    expect(found.map((errors) => errors.length > 0)).toEqual([false, true, true, true, true, true]);
    expect(found[1]?.join()).toContain(`'"rowHight"' does not exist`);
    expect(found[2]?.join()).toContain("'legend' is missing");
  });

  test('leave the bounds of numbers to this list', () => {
    const bounds: Record<string, readonly [number, number]> = {
      rowHeight: [0, 1],
      fillOpacity: [0, 100],
      lineWidth: [0, 10],
      pointSize: [1, 40],
    };
    const text = JSON.stringify(boards);
    const found = [...text.matchAll(/"(rowHeight|fillOpacity|lineWidth|pointSize)":([\d.-]+)/g)];
    expect(found.length).toBeGreaterThan(20);
    for (const [written, name = '', value] of found) {
      const [least, most] = bounds[name] ?? [0, 0];
      expect(Number(value), written).toBeGreaterThanOrEqual(least);
      expect(Number(value), written).toBeLessThanOrEqual(most);
    }
  });

  test('know every unit that is used', () => {
    const units = knownUnits();
    const used = panels.flatMap(({ panel }) => [
      panel.fieldConfig?.defaults['unit'],
      ...(panel.fieldConfig?.overrides ?? []).flatMap(({ properties }) =>
        properties.filter(({ id }) => id === 'unit').map(({ value }) => value),
      ),
    ]);
    expect(used.length).toBeGreaterThan(50);
    expect(used.filter((unit) => !units.has(String(unit)))).toEqual([]);
  });
});

const LEGEND = { displayMode: 'list', placement: 'bottom', showLegend: true, calcs: [] };
const TOOLTIP = { mode: 'single', sort: 'none' };

/** A screen on which no table has to be moved sideways, and what a column needs that has no width of its own. */
const SCREEN_PX = 1700;
const COLUMN_PX = 105;

test.each(
  panels.filter(({ panel }) => panel.type === 'table').map(({ board, panel }) => [board.uid, panel.title, panel]),
)('%s: the columns of "%s" fit into the panel', (_uid, _title, panel) => {
  const { gridPos, fieldConfig } = panel;
  const titles = titlesOf(panel);
  const widthOf = (title: string): number => {
    const own = fieldConfig?.overrides.find(({ matcher }) => matcher.id === 'byName' && matcher.options === title);
    return Number(own?.properties.find(({ id }) => id === 'custom.width')?.value ?? COLUMN_PX);
  };
  const room = ((SCREEN_PX - 8) / 24) * gridPos.w - 24;
  expect(titles.length).toBeGreaterThan(0);
  expect(titles.reduce((sum, title) => sum + widthOf(title), 0)).toBeLessThanOrEqual(room);
});

test('a table below a heading about attention leaves out devices that need none', () => {
  const under = boards.flatMap(({ panels: all }) => {
    let heading = '';
    return all.flatMap((panel) => {
      if (panel.type === 'row') heading = panel.title;
      return panel.type === 'table' && /attention/i.test(heading) ? [panel] : [];
    });
  });
  expect(under.length).toBeGreaterThan(0);
  for (const { title, transformations = [] } of under)
    expect(JSON.stringify(transformations), title).toMatch(
      /"filterByValue","options":\{"type":"include","match":"any"/,
    );
});

test('no panel of the full range stands below a heading about the present', () => {
  const underNow = boards.flatMap(({ panels: all }) => {
    let heading = '';
    return all.flatMap((panel) => {
      if (panel.type === 'row') heading = panel.title;
      return heading === 'Now' ? [panel.title] : [];
    });
  });
  expect(underNow).toContain('Lag');
  expect(underNow.filter((title) => /in this range|^All readings/.test(title))).toEqual([]);
});

test('the columns of alerts have the same names in every list, and the value of an alert is no reading', () => {
  const titled = boards.flatMap(({ panels: all }) =>
    all.flatMap(({ title, transformations = [] }) => {
      const names = JSON.stringify(transformations.filter(({ id }) => id === 'organize'));
      return /"Threshold"/.test(names) ? [[title, names] as const] : [];
    }),
  );
  expect(titled.length).toBeGreaterThan(4);
  for (const [title, names] of titled) {
    for (const column of ['Value in alert', 'Threshold', 'Fire count']) expect(names, title).toContain(`:"${column}"`);
  }
});

/** The titles of the columns of a table that are shown. */
function titlesOf({ transformations = [] }: Panel): string[] {
  const { renameByName = {}, excludeByName = {} } = (transformations.at(-1)?.options ?? {}) as {
    renameByName?: Record<string, string>;
    excludeByName?: object;
  };
  const left = new Set(Object.keys(excludeByName));
  return Object.entries(renameByName).flatMap(([name, title]) => (left.has(name) ? [] : [title]));
}

describe('titles match their panels', () => {
  const named = (uid: string, title: string): Panel => {
    const found = panels.find(({ board, panel }) => board.uid === uid && panel.title === title);
    if (found === undefined) throw new Error(`no panel "${title}" on ${uid}`);
    return found.panel;
  };
  const ofDevices = panels.filter(({ panel }) => titlesOf(panel).includes('Time not read'));

  test('a list of devices beside a count of alerts has a title about devices, and refers to the alerts', () => {
    const { description } = named('tidemark-start', 'Devices that need attention');
    expect(description).toMatch(/alerts are not listed here: the dashboard "Alerts"/);
  });

  test('in the table of the plan, each number is a limit or in use', () => {
    const titles = titlesOf(named('tidemark-workspace', 'Plan'));
    const isFact = (title: string): boolean => /^(?:Workspace|Plan|Read)\b/.test(title);
    const numbers = titles.filter((title) => !isFact(title));
    expect(numbers).toHaveLength(6);
    expect(numbers.filter((title) => !/\blimit\)$/.test(title))).toEqual(['Devices in use']);
  });

  test('it is Tidemark that writes a lag every 15 minutes, no device that reports', () => {
    const text = JSON.stringify(boards);
    expect(text).toContain('Tidemark writes the lag of each device at least every 15 minutes');
    expect(text).not.toMatch(/15-min reports|[Dd]evice reports at least/);
  });

  test('a time that is not read is no missing reading, and a table that shows it explains that', () => {
    expect(ofDevices.map(({ board }) => board.uid).toSorted()).toEqual([
      ...['tidemark-device', 'tidemark-fleet', 'tidemark-vm-device', 'tidemark-vm-fleet'],
    ]);
    for (const { panel } of ofDevices)
      expect(panel.description).toMatch(/"none" does not mean that the device has sent/);
    expect(panels.filter(({ panel }) => titlesOf(panel).includes('Missing'))).toEqual([]);
  });

  test('the highest fire count is that of alerts that were seen in the range, not opened in it', () => {
    const { description } = named('tidemark-alerts', 'Highest fire count (alerts seen in this range)');
    expect(description).toMatch(/opened before the range/);
  });

  test('rules about Tidemark that fire are no alerts of the workspace', () => {
    const { description, fieldConfig } = named('tidemark-sync', 'Firing rules about Tidemark');
    expect(description).toMatch(/about Tidemark itself/);
    expect(fieldConfig?.defaults['noValue']).toBe('No rule fires.');
  });

  test('the thresholds of a sensor are drawn while an alert is open, and the description of its chart explains that', () => {
    expect(named('tidemark-vm-device', '$sensor').description).toMatch(/only while an alert is open/);
  });
});

test('uids are those that links and bookmarks know, for ever', () => {
  expect(boards.map(({ uid }) => uid)).toEqual(KNOWN_UIDS);
});

const KNOWN_UIDS = [
  'tidemark-alerts',
  'tidemark-device',
  'tidemark-fleet',
  'tidemark-sensors',
  'tidemark-start',
  'tidemark-sync',
  'tidemark-workspace',
  'tidemark-vm-device',
  'tidemark-vm-fleet',
];

test.each(boards.map((board) => [board.uid, board] as const))('the panels of %s do not overlap', (_, board) => {
  const taken = new Map<string, string>();
  for (const { title, gridPos } of board.panels) {
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect(taken.get(`${x},${y}`), title).toBeUndefined();
        taken.set(`${x},${y}`, title);
      }
    }
  }
  const ids = allPanels(board).map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
});

test.each(boards.map((board) => [board.uid, board] as const))(
  'no panel of %s has an empty place above it',
  (_, board) => {
    // A panel that is repeated fills its line.
    const taken = new Set(
      board.panels.flatMap(({ gridPos, repeat }) =>
        cellsOf(repeat === undefined ? gridPos : { ...gridPos, x: 0, w: 24 }),
      ),
    );
    for (const { title, gridPos } of board.panels) {
      const above = cellsOf({ ...gridPos, y: gridPos.y - 1, h: 1 }).filter(() => gridPos.y > 0);
      // A heading comes after all panels of the section before it, which may end at different heights.
      if (gridPos.h > 1)
        expect(
          above.filter((cell) => !taken.has(cell)),
          title,
        ).toEqual([]);
    }
  },
);

function cellsOf({ x, y, w, h }: Board['panels'][number]['gridPos']): string[] {
  const rows = Array.from({ length: h }, (_, row) => y + row);
  return rows.flatMap((row) => Array.from({ length: w }, (_, column) => `${x + column},${row}`));
}

test.each(boards.map((board) => [board.uid, board] as const))(
  'the counts of %s link to the counted items',
  (_, board) => {
    // The numbers of "Sync health" stand beside the tables and charts that explain them.
    const counts = shownPanels(board).filter(({ type }) => type === 'stat' && board.uid !== 'tidemark-sync');
    for (const { title, fieldConfig } of counts) {
      const links = fieldConfig?.overrides.flatMap(({ properties }) => properties.filter(({ id }) => id === 'links'));
      const [{ url = '' } = {}] = (links?.[0]?.value ?? []) as { url?: string }[];
      const to = boards.find(({ uid }) => url.startsWith(`/d/${uid}?`));
      const id = /viewPanel=(\d+)/.exec(url)?.[1];
      expect(to, title).toBeDefined();
      if (id !== undefined && to !== undefined) {
        expect(['table', 'timeseries'], title).toContain(allPanels(to).find((panel) => panel.id === Number(id))?.type);
      }
    }
  },
);

test.each(boards.map((board) => [board.uid, board] as const))(
  '%s describes itself, and links to the next',
  (_, board) => {
    expect(board.description.length).toBeGreaterThan(30);
    expect(board.timezone).toBe('browser');
    expect(['now-24h', 'now-6h', 'now-3h', 'now-1h']).toContain(board.time.from);
    // A set leads to its own: a choice made in one means nothing in the other.
    const tags = board.uid.startsWith('tidemark-vm-') ? ['tidemark-promql'] : ['tidemark'];
    expect(board.tags).toEqual(tags);
    expect(board.links).toMatchObject([{ type: 'dashboards', tags, keepTime: true, includeVars: true }]);
    for (const panel of shownPanels(board)) {
      expect(panel.title, panel.title).not.toBe('');
      expect(panel.description?.length, panel.title).toBeGreaterThan(20);
      expect(panel.fieldConfig?.defaults['noValue'], panel.title).toBeTypeOf('string');
      expect(panel.targets?.length, panel.title).toBeGreaterThan(0);
    }
  },
);

test('the start page has a line with a sentence for each other dashboard of its set', () => {
  const start = boards.find(({ uid }) => uid === 'tidemark-start');
  const content = String(allPanels(start as Board).find(({ type }) => type === 'text')?.options?.['content']);
  const others = boards.filter(({ uid, tags }) => uid !== 'tidemark-start' && tags[0] === 'tidemark');
  const lines = content.split('\n');
  expect(lines).toHaveLength(others.length);
  for (const { uid, description } of others) {
    // Relative, for a Grafana below a sub-path: to a text it does not add that.
    expect(lines.find((line) => line.includes(`](d/${uid}?`)) ?? uid).toContain(description);
  }
});

test('links to a dashboard lead to one, and carry the data source and the range', () => {
  const urls = panels.flatMap(({ board, panel }) =>
    [...JSON.stringify(panel).matchAll(/"url":"([^"]+)"/g)].map(([, url]) => ({ board, url })),
  );
  expect(urls.length).toBeGreaterThan(3);
  for (const { board, url } of urls) {
    const to = boards.find(({ uid }) => uid === /^\/d\/([\w-]+)\?/.exec(url ?? '')?.[1]);
    expect(to?.tags, url).toEqual(board.tags);
    expect(url).toMatch(/\$\{__url_time_range\}$/);
    // "Sync health" has another source than where it leads: a variable that it has not would stay in the address.
    const carried = /\$\{(\w+):queryparam\}/.exec(url ?? '')?.[1];
    if (board.uid === 'tidemark-sync') expect(carried, url).toBeUndefined();
    else expect(['datasource', 'victoria_datasource'], url).toContain(carried);
  }
});

test.each(boards.map((board) => [board.uid, board] as const))(
  '%s contains no host and no id, and queries the chosen devices',
  (_, board) => {
    const text = JSON.stringify(board);
    expect(/https?:|localhost|127\.0\.0\.1|ws-demo|hub-ham|add-ham/.exec(text)).toBeNull();
    const uids = [...text.matchAll(/"uid":"([^"]*)"/g)].map(([, uid]) => uid);
    const source = board.templating.list[0]?.name;
    expect(new Set(uids)).toEqual(new Set([board.uid, `\${${source}}`]));
    const variables = new Set(board.templating.list.map(({ name }) => name));
    const used = new Set([...text.matchAll(/\$\{?([a-z]\w*)/g)].map(([, name]) => name ?? ''));
    for (const own of [
      'timeFilter',
      'tag_device_name',
      'tag_sensor',
      'tag_kind',
      'tag_workspace_id',
      'tag_alert_id',
      'col',
    ]) {
      used.delete(own);
    }
    expect([...used].filter((name) => !variables.has(name))).toEqual([]);
    const chained = board.templating.list.map((variable) => queryOf(variable) ?? '');
    // Each list depends on those before it only.
    chained.forEach((query, index) => {
      const before = new Set(board.templating.list.slice(0, index).map(({ name }) => name));
      for (const [, name = ''] of query.matchAll(/\$\{([a-z]\w*)/g)) expect(before).toContain(name);
    });
    for (const { type, refresh } of board.templating.list) if (type === 'query') expect(refresh).toBe(2);
  },
);

test('the list of data sources has those of InfluxQL: the others that Grafana lists cannot answer', () => {
  for (const { templating } of boards.filter(asksInflux)) {
    const [source] = templating.list;
    const { 1: pattern = '', 2: flags } = /^\/(.*)\/(\w*)$/.exec(source?.regex ?? '') ?? [];
    const isListed = (name: string): boolean => new RegExp(pattern, flags).test(name);
    expect(['Tidemark (InfluxDB)', 'InfluxDB', 'influx-home', 'InfluxQL'].filter((name) => !isListed(name))).toEqual(
      [],
    );
    expect(['InfluxDB (Flux)', 'flux', 'InfluxDB Flux 2', 'InfluxDB 3 SQL'].filter(isListed)).toEqual([]);
  }
});

test('a variable in a link exists on the target dashboard', () => {
  const forms = new Map<string, string>();
  for (const { uid, templating } of boards) {
    for (const { name, type, query, multi, includeAll } of templating.list) {
      // A data source of another kind answers nothing; "All" of what has none would be everything at once.
      const form = JSON.stringify([type, type === 'datasource' ? query : '', multi, includeAll]);
      expect(form, `${uid}: ${name}`).toBe(forms.get(name) ?? form);
      forms.set(name, form);
    }
  }
});

test('lines break where nothing came for long, not because the steps of a long range are longer than that', () => {
  for (const { board, panel } of panels.filter((one) => one.panel.type === 'timeseries')) {
    const { spanNulls, insertNulls, drawStyle } = (panel.fieldConfig?.defaults['custom'] ?? {}) as Record<
      string,
      unknown
    >;
    if (drawStyle === 'bars') continue;
    expect(insertNulls, panel.title).toBeUndefined();
    // While the daemon answers, each step of its own metrics has a value.
    if (board.uid === 'tidemark-sync') expect(spanNulls, panel.title).toBe(false);
    else expect(spanNulls, panel.title).toBeGreaterThan(0);
    const isJoined = panel.transformations?.some(({ id }) => id === 'joinByField') === true;
    for (const { query } of panel.targets ?? []) {
      if (query === undefined || (isJoined && query.endsWith('fill(none)'))) continue;
      // A threshold holds until it is set anew.
      expect(query).toMatch(/FROM alert .*fill\(previous\)$|fill\(null\)$/);
    }
    // A join by time needs the steps without points from one query at least.
    if (isJoined) expect(panel.targets?.some(({ query }) => query?.endsWith('fill(null)'))).toBe(true);
  }
});

/** All queries to InfluxDB. */
function queriesOf(board: Board): string[] {
  return [
    ...shownPanels(board).flatMap(({ targets = [] }) => targets.map(({ query = '' }) => query)),
    ...board.templating.list.flatMap((variable) => queryOf(variable) ?? []),
    ...board.annotations.list.map(({ target }) => target.query ?? ''),
  ];
}

test.each(boards.filter(asksInflux).map((board) => [board.uid, board] as const))(
  '%s uses queries that every InfluxDB understands, within a range, and no finer than it shows',
  (_, board) => {
    for (const query of queriesOf(board)) {
      expect(query).not.toMatch(
        /SHOW (?:SERIES|DATABASES)|CARDINALITY|SLIMIT|SOFFSET|SAMPLE\(|HOLT_WINTERS|SELECT \*|INTO /i,
      );
      const measured = [...query.matchAll(/FROM ([a-z]\w*)/g)];
      const bounded = [
        ...query.matchAll(
          /FROM [a-z]\w*(?: WITH KEY = "\w+")? WHERE (?:\$timeFilter|time >= \$\{__from\}ms|time > \$\{__to\}ms - (?:3h|17m))/g,
        ),
      ];
      expect(bounded.length, query).toBe(measured.length);
      for (const [, step] of query.matchAll(/GROUP BY time\(([^),]+)/g)) {
        // Or steps back from the end: of a report, of an hour; of a day, for the facts of a year.
        expect(['$__interval', '17m', '1h', ...(query.includes('FROM alert ') ? ['1d'] : [])]).toContain(step);
      }
      // A choice is put in where Grafana escapes it, and nowhere else.
      for (const [found] of query.matchAll(/\$\{[a-z]\w*[^}]*\}/g))
        expect(found).toMatch(/:regex\}$|^\$\{target:date:seconds\}$/);
      const rest = query.replace(/[=!]~ \/\^\$\{\w+:regex\}\$\//g, '').replaceAll(`$\{target:date:seconds}`, '');
      expect(rest).not.toMatch(/\$\{[a-z]/);
    }
  },
);
